/*M!999999\- enable the sandbox mode */ 
-- MariaDB dump 10.19  Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: slurm_acct
-- ------------------------------------------------------
-- Server version	10.11.19-MariaDB-0+deb12u1
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;

--
-- Table structure for table `acct_coord_table`
--

DROP TABLE IF EXISTS `acct_coord_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `acct_coord_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) DEFAULT 0,
  `acct` tinytext NOT NULL,
  `user` tinytext NOT NULL,
  PRIMARY KEY (`acct`(42),`user`(42)),
  KEY `user` (`user`(42))
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `acct_coord_table`
--

INSERT INTO `acct_coord_table` VALUES
(1794842498,1794842498,0,'physics','bob');

--
-- Table structure for table `acct_table`
--

DROP TABLE IF EXISTS `acct_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `acct_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) DEFAULT 0,
  `name` tinytext NOT NULL,
  `description` text NOT NULL,
  `organization` text NOT NULL,
  PRIMARY KEY (`name`(42))
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `acct_table`
--

INSERT INTO `acct_table` VALUES
(1794842459,1794842459,0,'bench','bench','bench'),
(1794842494,1794842494,0,'biology','biology','uni'),
(1794842494,1794842494,0,'physics','physics','uni'),
(1794842457,1794842457,0,'root','default root account','root'),
(1794842493,1794842493,0,'science','all sciences','uni'),
(1794842495,1794842495,0,'teaching','courses, it`s','uni');

--
-- Table structure for table `anchor_assoc_table`
--

DROP TABLE IF EXISTS `anchor_assoc_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_assoc_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) NOT NULL DEFAULT 0,
  `is_def` tinyint(4) NOT NULL DEFAULT 0,
  `id_assoc` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `user` tinytext NOT NULL DEFAULT '',
  `acct` tinytext NOT NULL,
  `partition` tinytext NOT NULL DEFAULT '',
  `parent_acct` tinytext NOT NULL DEFAULT '',
  `lft` int(11) NOT NULL,
  `rgt` int(11) NOT NULL,
  `shares` int(11) NOT NULL DEFAULT 1,
  `max_jobs` int(11) DEFAULT NULL,
  `max_jobs_accrue` int(11) DEFAULT NULL,
  `min_prio_thresh` int(11) DEFAULT NULL,
  `max_submit_jobs` int(11) DEFAULT NULL,
  `max_tres_pj` text NOT NULL DEFAULT '',
  `max_tres_pn` text NOT NULL DEFAULT '',
  `max_tres_mins_pj` text NOT NULL DEFAULT '',
  `max_tres_run_mins` text NOT NULL DEFAULT '',
  `max_wall_pj` int(11) DEFAULT NULL,
  `grp_jobs` int(11) DEFAULT NULL,
  `grp_jobs_accrue` int(11) DEFAULT NULL,
  `grp_submit_jobs` int(11) DEFAULT NULL,
  `grp_tres` text NOT NULL DEFAULT '',
  `grp_tres_mins` text NOT NULL DEFAULT '',
  `grp_tres_run_mins` text NOT NULL DEFAULT '',
  `grp_wall` int(11) DEFAULT NULL,
  `priority` int(10) unsigned DEFAULT NULL,
  `def_qos_id` int(11) DEFAULT NULL,
  `qos` blob NOT NULL DEFAULT '',
  `delta_qos` blob NOT NULL DEFAULT '',
  PRIMARY KEY (`id_assoc`),
  UNIQUE KEY `udex` (`user`(42),`acct`(42),`partition`(42)),
  KEY `lft` (`lft`),
  KEY `account` (`acct`(42))
) ENGINE=InnoDB AUTO_INCREMENT=14 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_assoc_table`
--

INSERT INTO `anchor_assoc_table` VALUES
(1794842458,1794842458,0,0,1,'','root','','',1,26,1,NULL,NULL,NULL,NULL,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,',1,',''),
(1794842459,1794842460,0,0,2,'root','root','','',24,25,1,NULL,NULL,NULL,NULL,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,'',''),
(1794842459,1794842459,0,0,3,'','bench','','root',20,23,1,NULL,NULL,NULL,NULL,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,'',''),
(1794842460,1794842460,0,1,4,'root','bench','','',21,22,1,NULL,NULL,NULL,NULL,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,'',''),
(1794842493,1794842493,0,0,5,'','science','','root',6,19,60,NULL,NULL,NULL,NULL,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,'',''),
(1794842494,1794842494,0,0,6,'','physics','','science',13,18,3,NULL,NULL,NULL,NULL,'','','','',NULL,40,NULL,NULL,'1=24,2=100000','','',NULL,NULL,NULL,'',''),
(1794842494,1794842494,0,0,7,'','biology','','science',7,12,1,NULL,NULL,NULL,NULL,'','','','',2880,NULL,NULL,NULL,'','','',NULL,NULL,NULL,'',''),
(1794842495,1794842495,0,0,8,'','teaching','','root',2,5,40,NULL,NULL,NULL,NULL,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,3,',1,3,',''),
(1794842496,1794842496,0,1,9,'alice','physics','','',16,17,2,20,NULL,NULL,NULL,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,',1,2,',''),
(1794842496,1794842496,0,0,10,'alice','biology','','',10,11,1,NULL,NULL,NULL,NULL,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,'',''),
(1794842497,1794842497,0,1,11,'bob','biology','','',8,9,2147483647,NULL,NULL,NULL,NULL,'1=4','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,'',''),
(1794842498,1794842499,0,1,12,'carol','teaching','','',3,4,1,NULL,NULL,NULL,200,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,'',''),
(1794842499,1794842499,0,0,13,'bob','physics','debug','',14,15,1,NULL,NULL,NULL,NULL,'','','','',NULL,NULL,NULL,NULL,'','','',NULL,NULL,NULL,'','');

--
-- Table structure for table `anchor_assoc_usage_day_table`
--

DROP TABLE IF EXISTS `anchor_assoc_usage_day_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_assoc_usage_day_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) NOT NULL DEFAULT 0,
  `id` int(10) unsigned NOT NULL,
  `id_tres` int(11) NOT NULL DEFAULT 1,
  `time_start` bigint(20) unsigned NOT NULL,
  `alloc_secs` bigint(20) unsigned NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`,`id_tres`,`time_start`),
  KEY `time_start` (`time_start`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_assoc_usage_day_table`
--


--
-- Table structure for table `anchor_assoc_usage_hour_table`
--

DROP TABLE IF EXISTS `anchor_assoc_usage_hour_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_assoc_usage_hour_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) NOT NULL DEFAULT 0,
  `id` int(10) unsigned NOT NULL,
  `id_tres` int(11) NOT NULL DEFAULT 1,
  `time_start` bigint(20) unsigned NOT NULL,
  `alloc_secs` bigint(20) unsigned NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`,`id_tres`,`time_start`),
  KEY `time_start` (`time_start`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_assoc_usage_hour_table`
--


--
-- Table structure for table `anchor_assoc_usage_month_table`
--

DROP TABLE IF EXISTS `anchor_assoc_usage_month_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_assoc_usage_month_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) NOT NULL DEFAULT 0,
  `id` int(10) unsigned NOT NULL,
  `id_tres` int(11) NOT NULL DEFAULT 1,
  `time_start` bigint(20) unsigned NOT NULL,
  `alloc_secs` bigint(20) unsigned NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`,`id_tres`,`time_start`),
  KEY `time_start` (`time_start`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_assoc_usage_month_table`
--


--
-- Table structure for table `anchor_event_table`
--

DROP TABLE IF EXISTS `anchor_event_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_event_table` (
  `time_start` bigint(20) unsigned NOT NULL,
  `time_end` bigint(20) unsigned NOT NULL DEFAULT 0,
  `node_name` tinytext NOT NULL DEFAULT '',
  `cluster_nodes` text NOT NULL DEFAULT '',
  `reason` tinytext NOT NULL,
  `reason_uid` int(10) unsigned NOT NULL DEFAULT 4294967294,
  `state` int(10) unsigned NOT NULL DEFAULT 0,
  `tres` text NOT NULL DEFAULT '',
  PRIMARY KEY (`node_name`(42),`time_start`),
  KEY `rollup` (`node_name`(42),`time_start`,`time_end`,`state`),
  KEY `time_start_end` (`time_start`,`time_end`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_event_table`
--

INSERT INTO `anchor_event_table` VALUES
(1794842461,0,'','n[001-004]','Cluster Registered TRES',4294967294,0,'1=32,2=262144,3=0,4=4,5=32,6=0,7=0,8=0,1001=16');

--
-- Table structure for table `anchor_job_table`
--

DROP TABLE IF EXISTS `anchor_job_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_job_table` (
  `job_db_inx` bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) NOT NULL DEFAULT 0,
  `account` tinytext DEFAULT NULL,
  `admin_comment` text DEFAULT NULL,
  `array_task_str` text DEFAULT NULL,
  `array_max_tasks` int(10) unsigned NOT NULL DEFAULT 0,
  `array_task_pending` int(10) unsigned NOT NULL DEFAULT 0,
  `constraints` text DEFAULT '',
  `container` text DEFAULT NULL,
  `cpus_req` int(10) unsigned NOT NULL,
  `derived_ec` int(10) unsigned NOT NULL DEFAULT 0,
  `derived_es` text DEFAULT NULL,
  `env_hash_inx` bigint(20) unsigned NOT NULL DEFAULT 0,
  `exit_code` int(10) unsigned NOT NULL DEFAULT 0,
  `flags` int(10) unsigned NOT NULL DEFAULT 0,
  `job_name` tinytext NOT NULL,
  `id_assoc` int(10) unsigned NOT NULL,
  `id_array_job` int(10) unsigned NOT NULL DEFAULT 0,
  `id_array_task` int(10) unsigned NOT NULL DEFAULT 4294967294,
  `id_block` tinytext DEFAULT NULL,
  `id_job` int(10) unsigned NOT NULL,
  `id_qos` int(10) unsigned NOT NULL DEFAULT 0,
  `id_resv` int(10) unsigned NOT NULL,
  `id_wckey` int(10) unsigned NOT NULL,
  `id_user` int(10) unsigned NOT NULL,
  `id_group` int(10) unsigned NOT NULL,
  `het_job_id` int(10) unsigned NOT NULL,
  `het_job_offset` int(10) unsigned NOT NULL,
  `kill_requid` int(10) unsigned DEFAULT NULL,
  `state_reason_prev` int(10) unsigned NOT NULL,
  `mcs_label` tinytext DEFAULT '',
  `mem_req` bigint(20) unsigned NOT NULL DEFAULT 0,
  `nodelist` text DEFAULT NULL,
  `nodes_alloc` int(10) unsigned NOT NULL,
  `node_inx` text DEFAULT NULL,
  `partition` tinytext NOT NULL,
  `priority` int(10) unsigned NOT NULL,
  `script_hash_inx` bigint(20) unsigned NOT NULL DEFAULT 0,
  `state` int(10) unsigned NOT NULL,
  `timelimit` int(10) unsigned NOT NULL DEFAULT 0,
  `time_submit` bigint(20) unsigned NOT NULL DEFAULT 0,
  `time_eligible` bigint(20) unsigned NOT NULL DEFAULT 0,
  `time_start` bigint(20) unsigned NOT NULL DEFAULT 0,
  `time_end` bigint(20) unsigned NOT NULL DEFAULT 0,
  `time_suspended` bigint(20) unsigned NOT NULL DEFAULT 0,
  `gres_used` text NOT NULL DEFAULT '',
  `wckey` tinytext NOT NULL DEFAULT '',
  `work_dir` text NOT NULL DEFAULT '',
  `submit_line` text DEFAULT NULL,
  `system_comment` text DEFAULT NULL,
  `tres_alloc` text NOT NULL DEFAULT '',
  `tres_req` text NOT NULL DEFAULT '',
  PRIMARY KEY (`job_db_inx`),
  UNIQUE KEY `id_job` (`id_job`,`time_submit`),
  KEY `old_tuple` (`id_job`,`id_assoc`,`time_submit`),
  KEY `rollup` (`time_eligible`,`time_end`),
  KEY `rollup2` (`time_end`,`time_eligible`),
  KEY `nodes_alloc` (`nodes_alloc`),
  KEY `wckey` (`id_wckey`),
  KEY `qos` (`id_qos`),
  KEY `association` (`id_assoc`),
  KEY `array_job` (`id_array_job`),
  KEY `het_job` (`het_job_id`),
  KEY `reserv` (`id_resv`),
  KEY `sacct_def` (`id_user`,`time_start`,`time_end`),
  KEY `sacct_def2` (`id_user`,`time_end`,`time_eligible`),
  KEY `env_hash_inx` (`env_hash_inx`),
  KEY `script_hash_inx` (`script_hash_inx`),
  KEY `archive_purge` (`time_submit`,`time_end`)
) ENGINE=InnoDB AUTO_INCREMENT=30 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_job_table`
--

INSERT INTO `anchor_job_table` VALUES
(1,1794842524,0,'physics',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,20,'highq',9,0,4294967294,NULL,2,2,0,0,1003,1004,0,4294967294,NULL,0,'',9223372036854775818,'n001',1,'0','main',1240,0,3,5,1794842518,1794842518,1794842518,1794842524,0,'','','/tmp/sites-jobs','sbatch -A physics --qos=high -n1 -t 5 -J highq --wrap sleep 6',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(2,1794842524,0,'biology',NULL,NULL,0,0,'',NULL,4,0,NULL,0,0,20,'two',10,0,4294967294,NULL,3,1,0,0,1003,1004,0,4294967294,NULL,0,'',9223372036854775818,'n[001-002]',2,'0-1','main',412,0,3,10,1794842518,1794842518,1794842518,1794842524,0,'','','/tmp/sites-jobs','sbatch -A biology -N2 -n4 -t 10 -J two --comment=it\'s a \"test\"; with \\ marks --wrap srun sleep 3',NULL,'1=4,2=40,4=2,5=4','1=4,2=40,4=2,5=4'),
(3,1794842523,0,'physics',NULL,NULL,0,0,'',NULL,2,256,NULL,0,256,20,'steps',9,0,4294967294,NULL,1,1,0,0,1003,1004,0,4294967294,NULL,0,'',9223372036854775818,'n001',1,'0','main',256,0,5,5,1794842518,1794842518,1794842518,1794842523,0,'','','/tmp/sites-jobs','sbatch -A physics -n2 -t 5 -J steps --wrap srun -n1 -N1 sleep 2; srun -n2 hostname; srun -n1 false',NULL,'1=2,2=20,4=1,5=2','1=2,2=20,4=1,5=2'),
(7,1794842522,0,'biology',NULL,NULL,0,0,'',NULL,1,0,NULL,0,768,24,'fails',11,0,4294967294,NULL,4,1,0,0,1004,1005,0,4294967294,NULL,0,'',9223372036854775818,'n003',1,'2','main',240,0,5,1,1794842518,1794842518,1794842521,1794842522,0,'','','/tmp/sites-jobs','sbatch -A biology -n1 -t 1 -J fails --wrap sleep 1; exit 3',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(8,1794842525,0,'biology',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,24,'gpu',11,0,4294967294,NULL,5,1,0,0,1004,1005,0,4294967294,NULL,0,'',200,'n003',1,'2','main',240,0,3,5,1794842518,1794842518,1794842521,1794842525,0,'','','/tmp/sites-jobs','sbatch -A biology -n1 --gres=gpu:a100:2 --mem=200 -t 5 -J gpu --wrap sleep 4',NULL,'1=1,2=200,3=18446744073709551614,4=1,5=1,1001=2','1=1,2=200,4=1,5=1,1001=2'),
(9,1794842527,0,'physics',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,20,'part',13,0,4294967294,NULL,6,1,0,0,1004,1005,0,4294967294,NULL,0,'',9223372036854775818,'n001',1,'0','debug',240,0,3,1,1794842518,1794842518,1794842524,1794842527,0,'','','/tmp/sites-jobs','sbatch -A physics -p debug -n1 -t 1 -J part --wrap sleep 2',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(10,1794842529,0,'teaching',NULL,NULL,2,0,'',NULL,1,0,NULL,0,0,20,'array',12,7,5,NULL,7,3,0,0,1005,1006,0,4294967294,NULL,72,'',9223372036854775818,'n002',1,'1','main',250,0,3,2,1794842518,1794842527,1794842527,1794842529,0,'','','/tmp/sites-jobs','sbatch -A teaching -a 1-5%2 -n1 -t 2 -J array --wrap sleep 1; [ $SLURM_ARRAY_TASK_ID != 3 ]',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(11,1794842529,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,24,'cancelme',12,0,4294967294,NULL,8,3,0,0,1005,1006,0,4294967294,0,0,'',9223372036854775818,'n002',1,'1','main',250,0,4,2,1794842518,1794842518,1794842521,1794842529,0,'','','/tmp/sites-jobs','sbatch -A teaching -n1 -t 2 -J cancelme --wrap sleep 100',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(12,1794842521,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,9,24,'sig',12,0,4294967294,NULL,9,3,0,0,1005,1006,0,4294967294,NULL,0,'',9223372036854775818,'n002',1,'1','main',250,0,5,2,1794842518,1794842518,1794842521,1794842521,0,'','','/tmp/sites-jobs','sbatch -A teaching -n1 -t 2 -J sig --wrap kill -9 $$',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(13,1794842522,0,'physics',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,24,'het',9,0,4294967294,NULL,10,1,0,0,1003,1004,10,0,NULL,0,'',9223372036854775818,'n003',1,'2','main',240,0,3,2,1794842518,1794842518,1794842521,1794842522,0,'','','/tmp/sites-jobs','sbatch -A physics -n1 -t 2 -J het : -n2 --wrap sleep 1',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(14,1794842522,0,'physics',NULL,NULL,0,0,'',NULL,2,0,NULL,0,0,24,'het',9,0,4294967294,NULL,11,1,0,0,1003,1004,10,1,NULL,0,'',9223372036854775818,'n001',1,'0','main',256,0,3,2,1794842518,1794842518,1794842521,1794842522,0,'','','/tmp/sites-jobs','sbatch -A physics -n1 -t 2 -J het : -n2 --wrap sleep 1',NULL,'1=2,2=20,3=18446744073709551614,4=1,5=2','1=2,2=20,4=1,5=2'),
(15,1794842524,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,24,'requeued',12,0,4294967294,NULL,12,3,0,0,1005,1006,0,4294967294,NULL,0,'',9223372036854775818,'n002',1,'1','main',250,0,3,2,1794842518,1794842518,1794842521,1794842524,0,'','','/tmp/sites-jobs','sbatch -A teaching -n1 -t 2 --requeue -J requeued --wrap sleep 3',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(16,1794842529,0,'physics',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,16,'heldcancel',9,0,4294967294,NULL,13,1,0,0,1003,1004,0,4294967294,0,16,'',9223372036854775818,'None assigned',0,NULL,'main',0,0,4,2,1794842518,0,0,1794842529,0,'','','/tmp/sites-jobs','sbatch -A physics -n1 -t 2 -H -J heldcancel --wrap sleep 1',NULL,'','1=1,2=10,4=1,5=1'),
(17,1794842521,0,'physics',NULL,NULL,0,0,'',NULL,2,0,NULL,0,0,24,'direct',9,0,4294967294,NULL,14,1,0,0,1003,1004,0,4294967294,NULL,0,'',9223372036854775818,'n002',1,'1','main',256,0,3,1,1794842518,1794842518,1794842521,1794842521,0,'','','/tmp/sites-jobs','srun -A physics -n2 -t 1 -J direct hostname',NULL,'1=2,2=20,4=1,5=2','1=2,2=20,4=1,5=2'),
(18,1794842529,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,24,'array',12,7,1,NULL,15,3,0,0,1005,1006,0,4294967294,NULL,0,'',9223372036854775818,'n002',1,'1','main',250,0,1024,2,1794842518,1794842518,1794842521,1794842529,0,'','','/tmp/sites-jobs','sbatch -A teaching -a 1-5%2 -n1 -t 2 -J array --wrap sleep 1; [ $SLURM_ARRAY_TASK_ID != 3 ]',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(19,1794842525,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,24,'array',12,7,2,NULL,16,3,0,0,1005,1006,0,4294967294,NULL,0,'',9223372036854775818,'n002',1,'1','main',250,0,3,2,1794842518,1794842518,1794842521,1794842522,0,'','','/tmp/sites-jobs','sbatch -A teaching -a 1-5%2 -n1 -t 2 -J array --wrap sleep 1; [ $SLURM_ARRAY_TASK_ID != 3 ]',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(20,1794842526,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,256,20,'array',12,7,3,NULL,17,3,0,0,1005,1006,0,4294967294,NULL,72,'',9223372036854775818,'n002',1,'1','main',250,0,5,2,1794842518,1794842524,1794842524,1794842526,0,'','','/tmp/sites-jobs','sbatch -A teaching -a 1-5%2 -n1 -t 2 -J array --wrap sleep 1; [ $SLURM_ARRAY_TASK_ID != 3 ]',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(21,1794842526,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,20,'array',12,7,4,NULL,18,3,0,0,1005,1006,0,4294967294,NULL,72,'',9223372036854775818,'n002',1,'1','main',250,0,3,2,1794842518,1794842524,1794842524,1794842526,0,'','','/tmp/sites-jobs','sbatch -A teaching -a 1-5%2 -n1 -t 2 -J array --wrap sleep 1; [ $SLURM_ARRAY_TASK_ID != 3 ]',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(26,1794842666,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,24,'array',12,7,1,NULL,15,3,0,0,1005,1006,0,4294967294,NULL,9,'',9223372036854775818,'n001',1,'0','main',250,0,3,2,1794842529,1794842650,1794842665,1794842666,0,'','','/tmp/sites-jobs','sbatch -A teaching -a 1-5%2 -n1 -t 2 -J array --wrap sleep 1; [ $SLURM_ARRAY_TASK_ID != 3 ]',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(27,1794843136,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,20,'requeued',12,0,4294967294,NULL,19,3,0,0,1005,1006,0,4294967294,NULL,0,'',9223372036854775818,'n001',1,'0','main',7393,0,1024,2,1794843134,1794843134,1794843134,1794843136,0,'','','/tmp/sites-jobs','sbatch -A teaching -n1 -t 2 --requeue -J requeued --wrap sleep 5',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1'),
(29,1794843270,0,'teaching',NULL,NULL,0,0,'',NULL,1,0,NULL,0,0,24,'requeued',12,0,4294967294,NULL,19,3,0,0,1005,1006,0,4294967294,NULL,9,'',9223372036854775818,'n001',1,'0','main',7393,0,3,2,1794843139,1794843260,1794843265,1794843270,0,'','','/tmp/sites-jobs','sbatch -A teaching -n1 -t 2 --requeue -J requeued --wrap sleep 5',NULL,'1=1,2=10,3=18446744073709551614,4=1,5=1','1=1,2=10,4=1,5=1');

--
-- Table structure for table `anchor_last_ran_table`
--

DROP TABLE IF EXISTS `anchor_last_ran_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_last_ran_table` (
  `hourly_rollup` bigint(20) unsigned NOT NULL DEFAULT 0,
  `daily_rollup` bigint(20) unsigned NOT NULL DEFAULT 0,
  `monthly_rollup` bigint(20) unsigned NOT NULL DEFAULT 0,
  PRIMARY KEY (`hourly_rollup`,`daily_rollup`,`monthly_rollup`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_last_ran_table`
--


--
-- Table structure for table `anchor_resv_table`
--

DROP TABLE IF EXISTS `anchor_resv_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_resv_table` (
  `id_resv` int(10) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) NOT NULL DEFAULT 0,
  `assoclist` text NOT NULL DEFAULT '',
  `flags` bigint(20) unsigned NOT NULL DEFAULT 0,
  `nodelist` text NOT NULL DEFAULT '',
  `node_inx` text NOT NULL DEFAULT '',
  `resv_name` text NOT NULL,
  `time_start` bigint(20) unsigned NOT NULL DEFAULT 0,
  `time_end` bigint(20) unsigned NOT NULL DEFAULT 0,
  `tres` text NOT NULL DEFAULT '',
  `unused_wall` double unsigned NOT NULL DEFAULT 0,
  PRIMARY KEY (`id_resv`,`time_start`),
  KEY `time_start_end` (`time_start`,`time_end`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_resv_table`
--


--
-- Table structure for table `anchor_step_table`
--

DROP TABLE IF EXISTS `anchor_step_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_step_table` (
  `job_db_inx` bigint(20) unsigned NOT NULL,
  `deleted` tinyint(4) NOT NULL DEFAULT 0,
  `exit_code` int(11) NOT NULL DEFAULT 0,
  `id_step` int(11) NOT NULL,
  `step_het_comp` int(10) unsigned NOT NULL DEFAULT 4294967294,
  `kill_requid` int(10) unsigned DEFAULT NULL,
  `nodelist` text NOT NULL,
  `nodes_alloc` int(10) unsigned NOT NULL,
  `node_inx` text DEFAULT NULL,
  `state` smallint(5) unsigned NOT NULL,
  `step_name` text NOT NULL,
  `task_cnt` int(10) unsigned NOT NULL,
  `task_dist` int(11) NOT NULL DEFAULT 0,
  `time_start` bigint(20) unsigned NOT NULL DEFAULT 0,
  `time_end` bigint(20) unsigned NOT NULL DEFAULT 0,
  `time_suspended` bigint(20) unsigned NOT NULL DEFAULT 0,
  `user_sec` bigint(20) unsigned NOT NULL DEFAULT 0,
  `user_usec` int(10) unsigned NOT NULL DEFAULT 0,
  `sys_sec` bigint(20) unsigned NOT NULL DEFAULT 0,
  `sys_usec` int(10) unsigned NOT NULL DEFAULT 0,
  `act_cpufreq` double unsigned NOT NULL DEFAULT 0,
  `consumed_energy` bigint(20) unsigned NOT NULL DEFAULT 0,
  `container` text DEFAULT NULL,
  `req_cpufreq_min` int(10) unsigned NOT NULL DEFAULT 0,
  `req_cpufreq` int(10) unsigned NOT NULL DEFAULT 0,
  `req_cpufreq_gov` int(10) unsigned NOT NULL DEFAULT 0,
  `submit_line` text DEFAULT NULL,
  `tres_alloc` text NOT NULL DEFAULT '',
  `tres_usage_in_ave` text NOT NULL DEFAULT '',
  `tres_usage_in_max` text NOT NULL DEFAULT '',
  `tres_usage_in_max_taskid` text NOT NULL DEFAULT '',
  `tres_usage_in_max_nodeid` text NOT NULL DEFAULT '',
  `tres_usage_in_min` text NOT NULL DEFAULT '',
  `tres_usage_in_min_taskid` text NOT NULL DEFAULT '',
  `tres_usage_in_min_nodeid` text NOT NULL DEFAULT '',
  `tres_usage_in_tot` text NOT NULL DEFAULT '',
  `tres_usage_out_ave` text NOT NULL DEFAULT '',
  `tres_usage_out_max` text NOT NULL DEFAULT '',
  `tres_usage_out_max_taskid` text NOT NULL DEFAULT '',
  `tres_usage_out_max_nodeid` text NOT NULL DEFAULT '',
  `tres_usage_out_min` text NOT NULL DEFAULT '',
  `tres_usage_out_min_taskid` text NOT NULL DEFAULT '',
  `tres_usage_out_min_nodeid` text NOT NULL DEFAULT '',
  `tres_usage_out_tot` text NOT NULL DEFAULT '',
  PRIMARY KEY (`job_db_inx`,`id_step`,`step_het_comp`),
  KEY `no_step_comp` (`job_db_inx`,`id_step`),
  KEY `time_start_end` (`time_start`,`time_end`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_step_table`
--

INSERT INTO `anchor_step_table` VALUES
(1,0,0,-5,4294967294,NULL,'n001',1,'0',3,'batch',1,0,1794842518,1794842524,0,0,1721,0,950,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3530752,3=0,6=0,7=80670720,8=0','1=0,2=3530752,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3530752,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3530752,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(2,0,0,-5,4294967294,NULL,'n001',1,'0',3,'batch',1,0,1794842518,1794842524,0,0,6066,0,4306,2299,0,NULL,0,0,0,NULL,'1=3,2=30,4=1','1=0,2=3387392,3=0,6=0,7=80670720,8=0','1=0,2=3387392,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3387392,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3387392,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(2,0,0,0,4294967294,NULL,'n[001-002]',2,'0-1',3,'sleep',4,2,1794842518,1794842521,0,0,3512,0,2899,7471,0,NULL,4294967294,4294967294,4294967294,'srun sleep 3','1=4,2=40,4=2','1=0,2=3197952,3=0,6=0,7=148643840,8=0','1=0,2=3219456,3=0,6=0,7=148643840,8=0','1=3,2=1,6=3,7=3,8=3','1=1,2=0,3=1,6=1,7=1,8=1','1=0,2=3149824,3=0,6=0,7=148643840,8=0','1=3,2=3,6=3,7=3,8=3','1=1,2=1,3=1,6=1,7=1,8=1','1=0,2=12791808,3=0,6=0,7=594575360,8=0','3=0,6=1','3=0,6=1','6=3','3=1,6=1','3=0,6=1','6=3','3=1,6=1','3=0,6=4'),
(3,0,256,-5,4294967294,NULL,'n001',1,'0',5,'batch',1,0,1794842518,1794842523,0,0,5613,0,17925,2299,0,NULL,0,0,0,NULL,'1=2,2=20,4=1','1=0,2=3399680,3=0,6=0,7=80670720,8=0','1=0,2=3399680,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3399680,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3399680,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(3,0,0,0,4294967294,NULL,'n001',1,'0',3,'sleep',1,1,1794842518,1794842520,0,0,167,0,1730,2299,0,NULL,4294967294,4294967294,4294967294,'srun -n1 -N1 sleep 2','1=2,2=20,4=1','1=0,2=3227648,3=0,6=0,7=148639744,8=0','1=0,2=3227648,3=0,6=0,7=148639744,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3227648,3=0,6=0,7=148639744,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3227648,3=0,6=0,7=148639744,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(3,0,0,1,4294967294,NULL,'n001',1,'0',3,'hostname',2,2,1794842520,1794842520,0,0,2844,0,0,4598,0,NULL,4294967294,4294967294,4294967294,'srun -n2 hostname','1=2,2=20,4=1','1=0,2=3084288,3=0,6=0,7=148639744,8=0','1=0,2=3084288,3=0,6=0,7=148639744,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3084288,3=0,6=0,7=148639744,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=6168576,3=0,6=0,7=297279488,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=2'),
(3,0,256,2,4294967294,NULL,'n001',1,'0',5,'false',1,1,1794842520,1794842520,0,0,1474,0,0,2299,0,NULL,4294967294,4294967294,4294967294,'srun -n1 false','1=2,2=20,4=1','1=0,2=3100672,3=0,6=0,7=148639744,8=0','1=0,2=3100672,3=0,6=0,7=148639744,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3100672,3=0,6=0,7=148639744,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3100672,3=0,6=0,7=148639744,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(7,0,768,-5,4294967294,NULL,'n003',1,'2',5,'batch',1,0,1794842521,1794842522,0,0,931,0,1496,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3342336,3=0,6=0,7=80670720,8=0','1=0,2=3342336,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3342336,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3342336,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(8,0,0,-5,4294967294,NULL,'n003',1,'2',3,'batch',1,0,1794842521,1794842525,0,0,2863,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=200,4=1,1001=2','1=0,2=3465216,3=0,6=0,7=80670720,8=0','1=0,2=3465216,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3465216,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3465216,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(9,0,0,-5,4294967294,NULL,'n001',1,'0',3,'batch',1,0,1794842524,1794842527,0,0,2484,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3342336,3=0,6=0,7=80670720,8=0','1=0,2=3342336,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3342336,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3342336,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(10,0,0,-5,4294967294,NULL,'n002',1,'1',3,'batch',1,0,1794842527,1794842529,0,0,1098,0,1646,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3432448,3=0,6=0,7=80670720,8=0','1=0,2=3432448,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3432448,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3432448,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(11,0,15,-5,4294967294,NULL,'n002',1,'1',4,'batch',1,0,1794842521,1794842532,0,0,205,0,1582,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3334144,3=0,6=0,7=80670720,8=0','1=0,2=3334144,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3334144,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3334144,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(12,0,9,-5,4294967294,NULL,'n002',1,'1',4,'batch',1,0,1794842521,1794842521,0,0,1552,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3366912,3=0,6=0,7=80670720,8=0','1=0,2=3366912,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3366912,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3366912,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(13,0,0,-5,4294967294,NULL,'n003',1,'2',3,'batch',1,0,1794842521,1794842522,0,0,2701,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3309568,3=0,6=0,7=80678912,8=0','1=0,2=3309568,3=0,6=0,7=80678912,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3309568,3=0,6=0,7=80678912,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3309568,3=0,6=0,7=80678912,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(15,0,0,-5,4294967294,NULL,'n002',1,'1',3,'batch',1,0,1794842521,1794842524,0,0,2543,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3342336,3=0,6=0,7=80670720,8=0','1=0,2=3342336,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3342336,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3342336,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(17,0,0,0,4294967294,NULL,'n002',1,'1',3,'direct',2,2,1794842521,1794842521,0,0,3193,0,0,4598,0,NULL,4294967294,4294967294,4294967294,'srun -A physics -n2 -t 1 -J direct hostname','1=2,2=20,4=1','1=0,2=3110912,3=0,6=0,7=148639744,8=0','1=0,2=3117056,3=0,6=0,7=148639744,8=0','1=0,2=1,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3104768,3=0,6=0,7=148639744,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=6221824,3=0,6=0,7=297279488,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=2'),
(18,0,0,-5,4294967294,NULL,'n002',1,'1',3,'batch',1,0,1794842521,1794842522,0,0,2611,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3399680,3=0,6=0,7=80670720,8=0','1=0,2=3399680,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3399680,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3399680,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(19,0,0,-5,4294967294,NULL,'n002',1,'1',3,'batch',1,0,1794842521,1794842522,0,0,2940,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3276800,3=0,6=0,7=80670720,8=0','1=0,2=3276800,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3276800,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3276800,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(20,0,256,-5,4294967294,NULL,'n002',1,'1',5,'batch',1,0,1794842524,1794842526,0,0,2489,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3375104,3=0,6=0,7=80670720,8=0','1=0,2=3375104,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3375104,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3375104,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(21,0,0,-5,4294967294,NULL,'n002',1,'1',3,'batch',1,0,1794842524,1794842526,0,0,2736,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=1134592,3=0,6=0,7=80670720,8=0','1=0,2=1134592,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=1134592,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=1134592,3=0,6=0,7=80670720,8=0','3=0,6=0','3=0,6=0','6=0','3=0,6=0','3=0,6=0','6=0','3=0,6=0','3=0,6=0'),
(26,0,0,-5,4294967294,NULL,'n001',1,'0',3,'batch',1,0,1794842665,1794842666,0,0,1705,0,944,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3465216,3=0,6=0,7=80670720,8=0','1=0,2=3465216,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3465216,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3465216,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(27,0,15,-5,4294967294,NULL,'n001',1,'0',4,'batch',1,0,1794843134,1794843139,0,0,1976,0,0,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3325952,3=0,6=0,7=80670720,8=0','1=0,2=3325952,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3325952,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3325952,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1'),
(29,0,0,-5,4294967294,NULL,'n001',1,'0',3,'batch',1,0,1794843265,1794843270,0,0,2444,0,209,2299,0,NULL,0,0,0,NULL,'1=1,2=10,4=1','1=0,2=3506176,3=0,6=0,7=80670720,8=0','1=0,2=3506176,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3506176,3=0,6=0,7=80670720,8=0','1=0,2=0,6=0,7=0,8=0','1=0,2=0,3=0,6=0,7=0,8=0','1=0,2=3506176,3=0,6=0,7=80670720,8=0','3=0,6=1','3=0,6=1','6=0','3=0,6=0','3=0,6=1','6=0','3=0,6=0','3=0,6=1');

--
-- Table structure for table `anchor_wckey_table`
--

DROP TABLE IF EXISTS `anchor_wckey_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `anchor_wckey_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) NOT NULL DEFAULT 0,
  `is_def` tinyint(4) NOT NULL DEFAULT 0,
  `id_wckey` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `wckey_name` tinytext NOT NULL DEFAULT '',
  `user` tinytext NOT NULL,
  PRIMARY KEY (`id_wckey`),
  UNIQUE KEY `udex` (`wckey_name`(42),`user`(42))
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `anchor_wckey_table`
--


--
-- Table structure for table `cluster_table`
--

DROP TABLE IF EXISTS `cluster_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `cluster_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) DEFAULT 0,
  `name` tinytext NOT NULL,
  `control_host` tinytext NOT NULL DEFAULT '',
  `control_port` int(10) unsigned NOT NULL DEFAULT 0,
  `last_port` int(10) unsigned NOT NULL DEFAULT 0,
  `rpc_version` smallint(5) unsigned NOT NULL DEFAULT 0,
  `classification` smallint(5) unsigned DEFAULT 0,
  `dimensions` smallint(5) unsigned DEFAULT 1,
  `plugin_id_select` smallint(5) unsigned DEFAULT 0,
  `flags` int(10) unsigned DEFAULT 0,
  `federation` tinytext NOT NULL,
  `features` text NOT NULL DEFAULT '',
  `fed_id` int(10) unsigned NOT NULL DEFAULT 0,
  `fed_state` smallint(5) unsigned NOT NULL,
  PRIMARY KEY (`name`(42))
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `cluster_table`
--

INSERT INTO `cluster_table` VALUES
(1794842458,1794842460,0,'anchor','127.0.0.1',27317,27317,9728,0,1,109,128,'','',0,0);

--
-- Table structure for table `qos_table`
--

DROP TABLE IF EXISTS `qos_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `qos_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) DEFAULT 0,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `name` tinytext NOT NULL,
  `description` text DEFAULT NULL,
  `flags` int(10) unsigned DEFAULT 0,
  `grace_time` int(10) unsigned DEFAULT NULL,
  `max_jobs_pa` int(11) DEFAULT NULL,
  `max_jobs_per_user` int(11) DEFAULT NULL,
  `max_jobs_accrue_pa` int(11) DEFAULT NULL,
  `max_jobs_accrue_pu` int(11) DEFAULT NULL,
  `min_prio_thresh` int(11) DEFAULT NULL,
  `max_submit_jobs_pa` int(11) DEFAULT NULL,
  `max_submit_jobs_per_user` int(11) DEFAULT NULL,
  `max_tres_pa` text NOT NULL DEFAULT '',
  `max_tres_pj` text NOT NULL DEFAULT '',
  `max_tres_pn` text NOT NULL DEFAULT '',
  `max_tres_pu` text NOT NULL DEFAULT '',
  `max_tres_mins_pj` text NOT NULL DEFAULT '',
  `max_tres_run_mins_pa` text NOT NULL DEFAULT '',
  `max_tres_run_mins_pu` text NOT NULL DEFAULT '',
  `min_tres_pj` text NOT NULL DEFAULT '',
  `max_wall_duration_per_job` int(11) DEFAULT NULL,
  `grp_jobs` int(11) DEFAULT NULL,
  `grp_jobs_accrue` int(11) DEFAULT NULL,
  `grp_submit_jobs` int(11) DEFAULT NULL,
  `grp_tres` text NOT NULL DEFAULT '',
  `grp_tres_mins` text NOT NULL DEFAULT '',
  `grp_tres_run_mins` text NOT NULL DEFAULT '',
  `grp_wall` int(11) DEFAULT NULL,
  `preempt` text NOT NULL DEFAULT '',
  `preempt_mode` int(11) DEFAULT 0,
  `preempt_exempt_time` int(10) unsigned DEFAULT NULL,
  `priority` int(10) unsigned DEFAULT 0,
  `usage_factor` double NOT NULL DEFAULT 1,
  `usage_thres` double DEFAULT NULL,
  `limit_factor` double DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `udex` (`name`(42))
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `qos_table`
--

INSERT INTO `qos_table` VALUES
(1794842457,1794842457,0,1,'normal','Normal QOS default',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'','','','','','','','',NULL,NULL,NULL,NULL,'','','',NULL,'',0,NULL,0,1,NULL,NULL),
(1794842492,1794842492,0,2,'high','for deadlines',64,30,NULL,10,NULL,NULL,NULL,NULL,NULL,'','','','1=6,1001=2','','','','',NULL,NULL,NULL,NULL,'','','',NULL,',1,',0,NULL,100,2,NULL,NULL),
(1794842492,1794842492,0,3,'low','low',0,0,NULL,NULL,NULL,NULL,NULL,NULL,50,'','','','','','','','',720,NULL,NULL,NULL,'1=16','','',NULL,'',2,NULL,1,1,NULL,NULL);

--
-- Table structure for table `tres_table`
--

DROP TABLE IF EXISTS `tres_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `tres_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `deleted` tinyint(4) NOT NULL DEFAULT 0,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `type` tinytext NOT NULL,
  `name` tinytext NOT NULL DEFAULT '',
  PRIMARY KEY (`id`),
  UNIQUE KEY `udex` (`type`(42),`name`(42))
) ENGINE=InnoDB AUTO_INCREMENT=1002 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `tres_table`
--

INSERT INTO `tres_table` VALUES
(1794842457,0,1,'cpu',''),
(1794842457,0,2,'mem',''),
(1794842457,0,3,'energy',''),
(1794842457,0,4,'node',''),
(1794842457,0,5,'billing',''),
(1794842457,0,6,'fs','disk'),
(1794842457,0,7,'vmem',''),
(1794842457,0,8,'pages',''),
(1794842457,1,1000,'dynamic_offset',''),
(1794842461,0,1001,'gres','gpu');

--
-- Table structure for table `user_table`
--

DROP TABLE IF EXISTS `user_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `user_table` (
  `creation_time` bigint(20) unsigned NOT NULL,
  `mod_time` bigint(20) unsigned NOT NULL DEFAULT 0,
  `deleted` tinyint(4) DEFAULT 0,
  `name` tinytext NOT NULL,
  `admin_level` smallint(6) NOT NULL DEFAULT 1,
  PRIMARY KEY (`name`(42))
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `user_table`
--

INSERT INTO `user_table` VALUES
(1794842496,1794842496,0,'alice',1),
(1794842497,1794842497,0,'bob',1),
(1794842498,1794842498,0,'carol',2),
(1794842457,1794842457,0,'root',3);

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

-- Dump completed on 2026-11-16 15:45:25
