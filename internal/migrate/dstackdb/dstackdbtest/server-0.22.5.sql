-- Tables of a database that a server of dstack 0.22.5 made, with what was created at it by its HTTP API and CLI.
-- Keys of projects are left out; those of users and fleets were made for this file.
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL
);
INSERT INTO "alembic_version" VALUES('40f19bea9d2a');
CREATE TABLE "users" (
	id CHAR(32) NOT NULL,
	name VARCHAR(50) NOT NULL,
	token VARCHAR(200) NOT NULL,
	global_role VARCHAR(100) NOT NULL,
	projects_quota INTEGER NOT NULL,
	email VARCHAR(200),
	token_hash VARCHAR(2000) NOT NULL,
	active BOOLEAN NOT NULL,
	created_at DATETIME NOT NULL,
	ssh_private_key TEXT,
	ssh_public_key TEXT,
	deleted BOOLEAN DEFAULT 0 NOT NULL,
	original_name VARCHAR(50)
);
INSERT INTO "users" VALUES('cffd84cffd0a4914b34e0a2ca9710ebe','admin','enc:identity:noname:adm1n-t0ken-of-the-real-server','ADMIN',10,NULL,'349e7401190dc3599312b5cf87389c0699b12fb495bf414fac3b485e00888b1f',1,'2026-11-16 09:45:57.113100',NULL,NULL,0,NULL);
INSERT INTO "users" VALUES('efc88c75df6549f3a1d774ad5eba562b','ann','enc:identity:noname:e289a009-7422-4d57-b333-34eaa2fff7be','USER',10,'ann@example.org','6082f391056ee007644ea948ba36368da5124ac8d78ad7d0b63ffe32a43872a7',1,'2026-11-16 09:46:32.460532',NULL,NULL,0,NULL);
INSERT INTO "users" VALUES('4590ee7230964d698bc70b404183509f','bob','enc:aes:key2:qyvPReZi4eaT3D2j2BQgBETaRgi8dZqAvBGeR5ZPtwgKWhbM04Vae1rrvYbie2vHO/121FPieGLyrjxNRpNF4Q==','ADMIN',10,NULL,'fc2be6d9eacd0fc2ad72db22c3af8eacc8e33d6863cdd195369b1e30692e222b',1,'2026-11-16 09:46:46.659735',NULL,NULL,0,NULL);
INSERT INTO "users" VALUES('1208623fc08b48b28b893f54d9b7eff4','carl','enc:aes:key2:dSR+hnkk+B6cJBnfv0IgLDUc7QUvb5HXgkrl+F2cHyxk0qTSPp8QP28WeUBbzqvSBxvnl9w2SXQvaJO7NIn67w==','USER',10,NULL,'3dc8252b7535c69bb97d2d305db8042dbf2db4e0b26d07b4034343e57ed75e0f',1,'2026-11-16 09:46:47.103241','-----BEGIN PRIVATE KEY-----
MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQCx+rEB6+4/q66c
55uKPEZDuAgVrFN9k/pseDE8hPd+n1cbl8tcPIl7TFku+mm9+GVKpqq7bnkytxkb
PNSTSHpxfmw9AcepzxowSEfIWLjIOAVRqEhiSuQzmz2OGkFKlgLPOieRLvUVq1WV
rHcxd3ta65n8jjF94+5pFJReL6QLvOBKirKCcKJtFV3FpQAYbQLiNZTiTlTMvitc
wDdh71Beyqsk36jBDAZyAXEiRS7MBlF6I61SiRqldPiQbXtGVOlmV5BBxTY4cXka
KuAu82UTEZyFpHyaXeJN5dKVf1K68jF6RmjxS/yLT7vCP0vCkwy3SANKkQ5710tI
oFpohfxxAgMBAAECggEAAKjzRHJfmgrOcxFDqRqdNq/WZQmDO4so8kenwARzNLFP
u7H6Hg2O0FnqG774d5NJChG1gv9hdNZevceZJiEhlvgMU1WFTjustzxZ6YYwsq/m
W/MKSDTCQPgipeGZAkhHFlshTJjWdlExAtYFkO0s2IHYx2FRZtSWW5T1xUiBX+/2
KAD6I9xJ04Ku9DZc9Qi2kyeYPVyscJR0sfmsqwnueLYEqTl0G98H1Y9hqnYqgvTF
VUys1eVBy37rMzt32nYoWX7r1cpKaDHTHeF0Y8uot9ZF2NsYn5zmfRhG9SnRTUvx
U5pN36DWDSJxG93b2qZf6Diu38xEGvVYwAdTJvcDgQKBgQDkqU6r2ckvVPkERIHN
WxhFjPgDzo9U5wLB78GGyzenDCrd7dnMhurT90goK8S6oz0auMtkfN22FTFLLRO3
m8X0x3jooi7zVodd94IUrZ+btoXFUh9qTAlg6JxTkammpr7sST8Wr98O0jPVAJt9
OwMHkztWofXsVGEJgAwm3HRAIQKBgQDHQiUsUHPPhBOkxrLCcoiug3cf8yDp5QjP
6Kny2lAHUFFH12i96j0Jec/Ri/v/B7WdJPR8+ZljqkmCtKfkFJd5/41isyLPCelJ
UozXCj0bIQmH9BNXQrwgNGQ3JW4NOZFDmUAOQgMiLfDtt7gUtrDPMShL3mlEk1Am
LLdD+U9yUQKBgD8t+KrLFieZ1uQy+ZqAHQi6lpyWqkvPOJfVYyeXZt0lI4MGgTNd
4+yFWs6eqVDYYb3MaYZuaeQxntkir1wAEoY7x1Cf31ElC2oPRUXpYzxnBjcrJbr9
H2pDW05L5RBC6mXnJyNhnMQ/mEq2TEAh2ghxyed6ALU360fwtWrXZteBAoGAXNal
yULm4q4QFPr7OPvyURUxwLIgCLpM48nsvRkYpn+2jzl/NNVZgPu/Z0vIqqel58Tb
IQuOe1BRFdQkUXGCrjXyYyVBt6NPjXkn492CYQyAi1aeWE7gpkSi2MrYvtKuqwdR
QBNjsF4lXiz2WLhSIwctVkQXWfslIdQ9wy765DECgYANRS8DUU5xwqXV0q9C8zJk
xHGeD97Vy/GYjU9kJYrHhEKsbWi198K0A/Wf9NUnH3JE5+SAaQIui0J9dBhLJBUP
EJpX88nRV+dwgYHXjZ0IAQHy5Lg5lfh/W3dCYzW8E3E1HRUjEYfjlKQolSruYS+y
xOazptUlgoG3zOtLsf1wDw==
-----END PRIVATE KEY-----
','ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCx+rEB6+4/q66c55uKPEZDuAgVrFN9k/pseDE8hPd+n1cbl8tcPIl7TFku+mm9+GVKpqq7bnkytxkbPNSTSHpxfmw9AcepzxowSEfIWLjIOAVRqEhiSuQzmz2OGkFKlgLPOieRLvUVq1WVrHcxd3ta65n8jjF94+5pFJReL6QLvOBKirKCcKJtFV3FpQAYbQLiNZTiTlTMvitcwDdh71Beyqsk36jBDAZyAXEiRS7MBlF6I61SiRqldPiQbXtGVOlmV5BBxTY4cXkaKuAu82UTEZyFpHyaXeJN5dKVf1K68jF6RmjxS/yLT7vCP0vCkwy3SANKkQ5710tIoFpohfxx carl
',0,NULL);
CREATE TABLE "projects" (
	id CHAR(32) NOT NULL,
	name VARCHAR(50) NOT NULL,
	ssh_private_key TEXT NOT NULL,
	ssh_public_key TEXT NOT NULL,
	default_gateway_id CHAR(32),
	owner_id CHAR(32) NOT NULL,
	deleted BOOLEAN NOT NULL,
	default_pool_id CHAR(32),
	created_at DATETIME NOT NULL,
	is_public BOOLEAN DEFAULT 0 NOT NULL,
	original_name VARCHAR(50),
	templates_repo TEXT
);
INSERT INTO "projects" VALUES('18a94c3d785245e4b0d1c3483e72d615','main','x','x',NULL,'cffd84cffd0a4914b34e0a2ca9710ebe',0,NULL,'2026-11-16 09:45:57.365102',0,NULL,NULL);
INSERT INTO "projects" VALUES('626687e956434ad3b538f5bdd6198e66','vision','x','x',NULL,'cffd84cffd0a4914b34e0a2ca9710ebe',0,NULL,'2026-11-16 09:46:32.683109',0,NULL,NULL);
CREATE TABLE "members" (
	id CHAR(32) NOT NULL,
	project_id CHAR(32) NOT NULL,
	user_id CHAR(32) NOT NULL,
	project_role VARCHAR(100) NOT NULL,
	member_num INTEGER
);
INSERT INTO "members" VALUES('fc1945eb2a004750b66ab570436d1169','18a94c3d785245e4b0d1c3483e72d615','cffd84cffd0a4914b34e0a2ca9710ebe','ADMIN',0);
INSERT INTO "members" VALUES('8210e75ed5fd4978ba84232eafccdc9a','626687e956434ad3b538f5bdd6198e66','cffd84cffd0a4914b34e0a2ca9710ebe','ADMIN',0);
INSERT INTO "members" VALUES('4d7289dafe1e4d01913d1646daf288db','626687e956434ad3b538f5bdd6198e66','efc88c75df6549f3a1d774ad5eba562b','MANAGER',NULL);
INSERT INTO "members" VALUES('8568946d5e7649a3a4e352443c62a918','626687e956434ad3b538f5bdd6198e66','1208623fc08b48b28b893f54d9b7eff4','USER',NULL);
INSERT INTO "members" VALUES('516bcd25203f46f691bdd8056e4bf2ad','626687e956434ad3b538f5bdd6198e66','4590ee7230964d698bc70b404183509f','ADMIN',NULL);
CREATE TABLE secrets (
	id CHAR(32) NOT NULL,
	project_id CHAR(32) NOT NULL,
	created_at DATETIME NOT NULL,
	updated_at DATETIME NOT NULL,
	name VARCHAR(200) NOT NULL,
	value VARCHAR NOT NULL
);
INSERT INTO "secrets" VALUES('718251d386a24b848ea6ff4ed7cf1f32','18a94c3d785245e4b0d1c3483e72d615','2026-11-16 09:46:32.919567','2026-11-16 09:46:32.919571','hf_token','enc:identity:noname:s3cret value ü');
INSERT INTO "secrets" VALUES('1d0c735fe29948b99eca56f526a24339','626687e956434ad3b538f5bdd6198e66','2026-11-16 09:46:48.007109','2026-11-16 09:46:48.007115','wandb','enc:aes:key2:fvTKa2TP6T+AZIF0gUYI8cWvE0gul1YKctOmMfZnW1G/ylvBxMu7yls=');
INSERT INTO "secrets" VALUES('68a4414cbe0544018f11765267634baf','626687e956434ad3b538f5bdd6198e66','2026-11-16 09:46:48.047843','2026-11-16 09:46:48.047847','again','enc:aes:key2:S7QbXEuvsflgJTWM61JaWqAYfgyxq3G9psUU/Kub0WfdTlEEqP19/6o=');
CREATE TABLE "fleets" (
	id CHAR(32) NOT NULL,
	name VARCHAR(100) NOT NULL,
	project_id CHAR(32) NOT NULL,
	created_at DATETIME NOT NULL,
	last_processed_at DATETIME NOT NULL,
	deleted BOOLEAN NOT NULL,
	deleted_at DATETIME,
	status VARCHAR(100) NOT NULL,
	status_message TEXT,
	spec TEXT NOT NULL,
	consolidation_attempt INTEGER DEFAULT '0' NOT NULL,
	last_consolidated_at DATETIME,
	lock_expires_at DATETIME,
	lock_token CHAR(32),
	lock_owner VARCHAR(100),
	current_master_instance_id CHAR(32)
);
INSERT INTO "fleets" VALUES('182b2546ba7f4a349419e9a0a234cc6d','lab','626687e956434ad3b538f5bdd6198e66','2026-11-16 09:47:17.134408','2026-11-16 09:47:19.422273',0,NULL,'ACTIVE',NULL,'{"configuration":{"type":"fleet","name":"lab","placement":"cluster","blocks":1,"nodes":null,"reservation":null,"resources":null,"backends":null,"regions":null,"availability_zones":null,"instance_types":null,"spot_policy":null,"retry":null,"max_price":null,"idle_duration":null,"tags":null,"backend_options":null,"ssh_config":{"user":"root","port":null,"identity_file":"/root/.ssh/fleet_key","ssh_key":{"public":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHtH0kHAWgLgxgX6ZHtuUEMCYF/DRgunYHqiTsqQtga3 fleet\n","private":"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\nQyNTUxOQAAACB7R9JBwFoC4MYF+mR7blBDAmBfw0YLp2B6ok7KkLYGtwAAAIj+EvZA/hL2\nQAAAAAtzc2gtZWQyNTUxOQAAACB7R9JBwFoC4MYF+mR7blBDAmBfw0YLp2B6ok7KkLYGtw\nAAAECHLTUX4MXDXewzBaR8YSDo2uJcFyRD7gwU/vD1MuZPintH0kHAWgLgxgX6ZHtuUEMC\nYF/DRgunYHqiTsqQtga3AAAABWZsZWV0\n-----END OPENSSH PRIVATE KEY-----\n"},"proxy_jump":null,"hosts":["127.0.0.1",{"hostname":"127.0.0.2","port":2222,"user":"ops","identity_file":null,"proxy_jump":null,"internal_ip":null,"ssh_key":null,"blocks":2}],"network":null},"env":{"HTTPS_PROXY":"http://proxy:3128"}},"configuration_path":"fleet.dstack.yml","profile":{"backends":null,"regions":null,"availability_zones":null,"instance_types":null,"reservation":null,"spot_policy":null,"retry":null,"max_duration":null,"stop_duration":null,"max_price":null,"creation_policy":null,"idle_duration":null,"utilization_policy":null,"startup_order":null,"stop_criteria":null,"schedule":null,"fleets":null,"instances":null,"tags":null,"backend_options":null,"name":"default","default":false},"autocreated":false}',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "fleets" VALUES('d72dd667fc444e048302cdd54aee4f8d','clouds','626687e956434ad3b538f5bdd6198e66','2026-11-16 09:47:23.253296','2026-11-16 09:47:23.288899',0,NULL,'ACTIVE',NULL,'{"configuration":{"type":"fleet","name":"clouds","placement":null,"blocks":1,"nodes":{"min":0,"max":2},"reservation":null,"resources":{"cpu":{"arch":null,"count":{"min":2,"max":null}},"memory":{"min":8.0,"max":null},"shm_size":null,"gpu":{"vendor":null,"name":null,"count":{"min":1,"max":1},"memory":null,"total_memory":null,"compute_capability":null},"disk":{"size":{"min":100.0,"max":null}}},"backends":null,"regions":null,"availability_zones":null,"instance_types":null,"spot_policy":null,"retry":null,"max_price":null,"idle_duration":null,"tags":null,"backend_options":null,"ssh_config":null,"env":{}},"configuration_path":"fleet2.dstack.yml","profile":{"backends":null,"regions":null,"availability_zones":null,"instance_types":null,"reservation":null,"spot_policy":null,"retry":null,"max_duration":null,"stop_duration":null,"max_price":null,"creation_policy":null,"idle_duration":null,"utilization_policy":null,"startup_order":null,"stop_criteria":null,"schedule":null,"fleets":null,"instances":null,"tags":null,"backend_options":null,"name":"default","default":false},"autocreated":false}',0,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE user_public_keys (
	id CHAR(32) NOT NULL,
	created_at DATETIME NOT NULL,
	user_id CHAR(32) NOT NULL,
	name VARCHAR(100) NOT NULL,
	type VARCHAR(100) NOT NULL,
	fingerprint VARCHAR(100) NOT NULL,
	"key" TEXT NOT NULL
);
INSERT INTO "user_public_keys" VALUES('c00b73f6529c4fb1a212dc6e62926896','2026-11-16 09:47:08.661421','1208623fc08b48b28b893f54d9b7eff4','laptop','ssh-ed25519','SHA256:RZt/6DTe6VZo08nBJiOTSqiVTaatG1l3pGk2CnLL58U','ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN888WVkKhsSykxoz4MNDeYoE1tdebl8b5tn0Qvzya0K carl@laptop');
CREATE TABLE "backends" (
	id CHAR(32) NOT NULL,
	project_id CHAR(32) NOT NULL,
	type VARCHAR(100) NOT NULL,
	config VARCHAR(20000) NOT NULL,
	auth VARCHAR(20000) NOT NULL,
	source_config VARCHAR(20000),
	source_auth VARCHAR(20000)
);
CREATE TABLE "volumes" (
	id CHAR(32) NOT NULL,
	name VARCHAR(100) NOT NULL,
	project_id CHAR(32) NOT NULL,
	created_at DATETIME NOT NULL,
	last_processed_at DATETIME NOT NULL,
	deleted BOOLEAN NOT NULL,
	deleted_at DATETIME,
	status VARCHAR(100) NOT NULL,
	status_message TEXT,
	configuration TEXT NOT NULL,
	volume_provisioning_data TEXT,
	volume_attachment_data TEXT,
	user_id CHAR(32) NOT NULL,
	last_job_processed_at DATETIME,
	to_be_deleted BOOLEAN DEFAULT 0 NOT NULL,
	auto_cleanup_enabled BOOLEAN,
	lock_expires_at DATETIME,
	lock_token CHAR(32),
	lock_owner VARCHAR(100)
);
CREATE TABLE "gateways" (
	id CHAR(32) NOT NULL,
	name VARCHAR(100) NOT NULL,
	region VARCHAR(100) NOT NULL,
	wildcard_domain VARCHAR(100),
	created_at DATETIME NOT NULL,
	project_id CHAR(32) NOT NULL,
	backend_id CHAR(32) NOT NULL,
	gateway_compute_id CHAR(32),
	configuration TEXT,
	status VARCHAR(100) NOT NULL,
	status_message TEXT,
	last_processed_at DATETIME NOT NULL,
	to_be_deleted BOOLEAN DEFAULT 0 NOT NULL,
	lock_expires_at DATETIME,
	lock_token CHAR(32),
	lock_owner VARCHAR(100),
	forbid_new_services BOOLEAN DEFAULT 0 NOT NULL,
	desired_replica_count INTEGER,
	replica_scale_attempt INTEGER DEFAULT '0' NOT NULL,
	last_replica_scale_attempt_at DATETIME,
	last_update_at DATETIME,
	hostname VARCHAR(255),
	backend_data TEXT
);
CREATE TABLE "runs" (
	id CHAR(32) NOT NULL,
	project_id CHAR(32) NOT NULL,
	repo_id CHAR(32) NOT NULL,
	user_id CHAR(32) NOT NULL,
	submitted_at DATETIME NOT NULL,
	run_name VARCHAR(100) NOT NULL,
	status VARCHAR(100) NOT NULL,
	run_spec TEXT NOT NULL,
	deleted BOOLEAN NOT NULL,
	last_processed_at DATETIME NOT NULL,
	gateway_id CHAR(32),
	termination_reason VARCHAR(100),
	service_spec TEXT,
	fleet_id CHAR(32),
	resubmission_attempt INTEGER NOT NULL,
	priority INTEGER NOT NULL,
	deployment_num INTEGER NOT NULL,
	desired_replica_count INTEGER NOT NULL,
	next_triggered_at DATETIME,
	desired_replica_counts TEXT,
	lock_expires_at DATETIME,
	lock_token CHAR(32),
	lock_owner VARCHAR(100),
	skip_min_processing_interval BOOLEAN DEFAULT 0 NOT NULL
);
CREATE TABLE "repos" (
	id CHAR(32) NOT NULL,
	project_id CHAR(32) NOT NULL,
	name VARCHAR(100) NOT NULL,
	type VARCHAR(100) NOT NULL,
	info TEXT NOT NULL,
	creds VARCHAR(5000)
);
