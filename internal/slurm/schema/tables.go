package schema

// tables are the descriptions. A line is a field: its name, and a form for each span of versions ("38:", "40-41:",
// "42-:"); a form without one is that of all versions that REST clients have. Forms are plain ones (NAME? is
// {set,infinite,number}, /null is null where there is nothing), [FORM] for a list, @OBJECT for a record, and %WORDS for
// one of a set of words.
var tables = []string{
	envelopeTable, jobTable, nodeTable, partitionTable, controlTable, submitTable, historyTable, peopleTable,
}

const envelopeTable = `
object openapi_meta
	plugin @openapi_meta_plugin
	client @openapi_meta_client
	command [string]
	slurm @openapi_meta_slurm
object openapi_meta_plugin
	type string
	name string
	data_parser string
	accounting_storage string
object openapi_meta_client
	source string
	user string
	group string
object openapi_meta_slurm
	version @openapi_meta_slurm_version
	release string
	cluster string
object openapi_meta_slurm_version
	major string
	micro string
	minor string
object openapi_error
	description string
	error_number int32
	error string
	source string
object openapi_warning
	description string
	source string
`

const jobTable = `
object job_info
	account 38:string string
	accrue_time 38:int uint64?
	admin_comment 38:string string
	allocating_node string
	array_job_id 38:int uint32?
	array_task_id 38:int/null uint32?
	array_max_tasks 38:int uint32?
	array_task_string 38:string string
	association_id 38:int int32
	batch_features 38:string string
	batch_flag 38:bool bool
	batch_host 38:string string
	flags 38:[string] [%job_flag]
	burst_buffer 38:string string
	burst_buffer_state 38:string string
	cluster 38:string string
	cluster_features 38:string string
	command 38:string string
	comment 38:string string
	container 38:string string
	container_id string
	contiguous 38:bool bool
	core_spec 38:int/null int32
	thread_spec 38:int/null int32
	cores_per_socket 38:int/null uint16?
	billable_tres 38:double double?
	cpus_per_task 38:int/null uint16?
	cpu_frequency_minimum 38:int/null uint32?
	cpu_frequency_maximum 38:int/null uint32?
	cpu_frequency_governor 38:int/null uint32?
	cpus_per_tres 38:string string
	cron string
	deadline 38:int uint64?
	delay_boot 38:int uint32?
	dependency 38:string string
	derived_exit_code 38:int @process_exit_code_verbose
	eligible_time 38:int uint64?
	end_time 38:int uint64?
	excluded_nodes 38:string string
	exit_code 38:int @process_exit_code_verbose
	extra string
	failed_node string
	features 38:string string
	federation_origin 38:string string
	federation_siblings_active 38:string string
	federation_siblings_viable 38:string string
	gres_detail 38:[string] [string]
	group_id 38:int int32
	group_name 38:string string
	het_job_id 38:int uint32?
	het_job_id_set 38:string string
	het_job_offset 38:int uint32?
	job_id 38:int int32
	job_resources 38:@job_res @job_res
	job_size_str [string]
	job_state 38:string [%job_state]
	last_sched_evaluation 38:int uint64?
	licenses 38:string string
	licenses_allocated 43:string
	mail_type [%mail_type]
	mail_user string
	max_cpus 38:int uint32?
	max_nodes 38:int uint32?
	mcs_label 38:string string
	memory_per_tres 38:string string
	name 38:string string
	network string
	nodes 38:string string
	nice 38:int/null int32
	tasks_per_core 38:int/null uint16?
	tasks_per_tres uint16?
	tasks_per_node 38:int uint16?
	tasks_per_socket 38:int/null uint16?
	tasks_per_board 38:int uint16?
	cpus 38:int uint32?
	node_count 38:int uint32?
	tasks 38:int uint32?
	partition 38:string string
	prefer 38:string string
	memory_per_cpu 38:int/null uint64?
	memory_per_node 38:int/null uint64?
	minimum_cpus_per_node 38:int uint16?
	minimum_tmp_disk_per_node 38:int uint32?
	power @job_power
	preempt_time 38:int uint64?
	preemptable_time uint64?
	pre_sus_time 38:int uint64?
	hold bool
	priority 38:int uint32?
	priority_by_partition 42-:[@part_prio]
	profile 38:string/null [%profile]
	qos 38:string string
	reboot 38:bool bool
	required_nodes 38:string string
	required_switches 42-:int32
	minimum_switches 40-41:int32
	requeue 38:bool bool
	resize_time 38:int uint64?
	restart_cnt 38:int int32
	resv_name 38:string string
	scheduled_nodes string
	segment_size 43:int32
	selinux_context string
	shared 38:string/null [%shared]
	exclusive 40-41:[%exclusive]
	oversubscribe 40-41:bool
	show_flags 38:[string] 40-41:[%show_flag]
	sockets_per_board 38:int int32
	sockets_per_node 38:int/null uint16?
	start_time 38:int uint64?
	state_description 38:string string
	state_reason 38:string string
	standard_error 38:string string
	standard_input 38:string string
	standard_output 38:string string
	stdin_expanded 43:string
	stdout_expanded 43:string
	stderr_expanded 43:string
	submit_time 38:int uint64?
	suspend_time 38:int uint64?
	system_comment 38:string string
	time_limit 38:int/null uint32?
	time_minimum 38:int uint32?
	threads_per_core 38:int/null uint16?
	tres_bind 38:string string
	tres_freq 38:string string
	tres_per_job 38:string string
	tres_per_node 38:string string
	tres_per_socket 38:string string
	tres_per_task 38:string string
	tres_req_str 38:string string
	tres_alloc_str 38:string string
	user_id 38:int int32
	user_name 38:string string
	maximum_switch_wait_time int32
	wckey 38:string string
	current_working_directory 38:string string
object process_exit_code_verbose
	status 38:string [%exit_status]
	return_code 38:int uint32?
	signal 38:@process_exit_signal @process_exit_signal
object process_exit_signal
	signal_id 38:int
	id uint16?
	name 38:string string
object part_prio
	partition string
	priority int32
object job_power
	flags [string]
object job_res
	select_type 41-:[%select_type]
	nodes 38-40:string 41-:@job_res_nodes
	cpus 41-:int32
	threads_per_core 41-:uint16?
	allocated_cores 40:int32
	allocated_cpus 38-40:int32
	allocated_hosts 38-40:int32
	allocated_nodes 38-40:[@job_res_node_old]
object job_res_node_old
	nodename 38-40:string
	cpus_used 38-40:int32
	memory_used 38-40:int64
	memory_allocated 38-40:int64
object job_res_nodes
	count int32
	select_type [%node_select_type]
	list string
	whole bool
	allocation [@job_res_node]
object job_res_node
	index int32
	name string
	cpus @job_res_node_cpus
	memory @job_res_node_memory
	sockets [@job_res_socket]
object job_res_node_cpus
	count int32
	used int32
object job_res_node_memory
	used int64
	allocated int64
object job_res_socket
	index int32
	cores [@job_res_core]
object job_res_core
	index int32
	status [%core_status]
object openapi_job_info_resp
	jobs 38:[@job_info] [@job_info]
	last_backfill uint64?
	last_update uint64?
`

const nodeTable = `
object node
	architecture 38:string string
	burstbuffer_network_address 38:string string
	boards 38:int int32
	boot_time 38:int uint64?
	tls_cert_last_renewal 43:uint64?
	cert_flags 43:[string]
	cluster_name string
	comment 38:string string
	cores 38:int int32
	specialized_cores int32
	cpu_binding 38:int int32
	cpu_load 38:int int32
	extra 38:string string
	free_memory 38:int
	free_mem uint64?
	cpus 38:int int32
	effective_cpus int32
	specialized_cpus string
	energy @acct_gather_energy
	external_sensors object
	power object
	last_busy 38:int uint64?
	features 38:string [string]
	active_features 38:string [string]
	gpu_spec 41-:string
	gres 38:string string
	gres_drained 38:string string
	gres_used 38:string string
	instance_id string
	instance_type string
	mcs_label 38:string string
	specialized_memory int64
	name 38:string string
	next_state_after_reboot 38:string [%node_state]
	address 38:string string
	hostname 38:string string
	state 38:string [%node_state]
	state_flags 38:[string]
	next_state_after_reboot_flags 38:[string]
	operating_system 38:string string
	owner 38:string/null string
	partitions 38:[string] [string]
	port 38:int int32
	real_memory 38:int int64
	res_cores_per_gpu 41-:int32
	reason 38:string string
	reason_changed_at 38:int uint64?
	reason_set_by_user 38:string/null string
	resume_after uint64?
	reservation string
	slurmd_start_time 38:int uint64?
	sockets 38:int int32
	threads 38:int int32
	temporary_disk 38:int int32
	weight 38:int int32
	topology 43:string
	tres 38:string string
	slurmd_version 38:string
	version string
	alloc_memory 38:int int64
	alloc_cpus 38:int int32
	alloc_idle_cpus int32
	idle_cpus 38:int
	tres_used 38:string/null string
	tres_weighted 38:double double
object acct_gather_energy
	average_watts int32
	base_consumed_energy int64
	consumed_energy int64
	current_watts uint32?
	previous_consumed_energy int64
	last_collected int64
object openapi_nodes_resp
	nodes 38:[@node] [@node]
	last_update uint64?
`

const partitionTable = `
object partition_info
	nodes @partition_info_nodes
	accounts @partition_info_accounts
	groups @partition_info_groups
	qos @partition_info_qos
	alternate string
	tres @partition_info_tres
	cluster string
	select_type 41-:[%select_type]
	cpus @partition_info_cpus
	defaults @partition_info_defaults
	grace_time int32
	maximums @partition_info_maximums
	minimums @partition_info_minimums
	name string
	node_sets string
	priority @partition_info_priority
	timeouts @partition_info_timeouts
	topology 43:string
	partition @partition_info_partition
	suspend_time uint32?
object partition_info_nodes
	allowed_allocation string
	configured string
	total int32
object partition_info_accounts
	allowed string
	deny string
object partition_info_groups
	allowed string
object partition_info_qos
	allowed string
	deny string
	assigned string
object partition_info_tres
	billing_weights string
	configured string
object partition_info_cpus
	task_binding int32
	total int32
object partition_info_defaults
	memory_per_cpu int64
	partition_memory_per_cpu uint64?
	partition_memory_per_node uint64?
	time uint32?
	job string
object partition_info_maximums
	cpus_per_node uint32?
	cpus_per_socket uint32?
	memory_per_cpu int64
	partition_memory_per_cpu uint64?
	partition_memory_per_node uint64?
	nodes uint32?
	shares int32
	oversubscribe @partition_info_oversubscribe
	time uint32?
	over_time_limit uint16?
object partition_info_oversubscribe
	jobs int32
	flags [%oversubscribe_flag]
object partition_info_minimums
	nodes int32
object partition_info_priority
	job_factor int32
	tier int32
object partition_info_timeouts
	resume uint16?
	suspend uint16?
object partition_info_partition
	state [%partition_state]
object openapi_partition_resp
	partitions [@partition_info]
	last_update uint64?
`

// sets are the words that texts are one of.
var sets = map[string]string{
	"job_state": "PENDING RUNNING SUSPENDED COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE " +
		"OUT_OF_MEMORY LAUNCH_FAILED REQUEUED REQUEUE_HOLD SPECIAL_EXIT RESIZING CONFIGURING COMPLETING STOPPED " +
		"RECONFIG_FAIL POWER_UP_NODE REVOKED REQUEUE_FED RESV_DEL_HOLD SIGNALING STAGE_OUT",
	"job_flag": "KILL_INVALID_DEPENDENCY NO_KILL_INVALID_DEPENDENCY SPREAD_JOB PREFER_MINIMUM_NODE_COUNT " +
		"HETEROGENEOUS_JOB JOB_WAS_RUNNING CRON_JOB EXACT_MEMORY_REQUESTED USING_DEFAULT_ACCOUNT " +
		"USING_DEFAULT_PARTITION USING_DEFAULT_QOS DEPENDENT SCHEDULING_ATTEMPTED BACKFILL_ATTEMPTED",
	"mail_type": "BEGIN END FAIL REQUEUE TIME=100% TIME=90% TIME=80% TIME=50% STAGE_OUT ARRAY_TASKS INVALID_DEPENDENCY",
	"profile":   "NOT_SET NONE ENERGY LUSTRE NETWORK TASK",
	"shared":    "none oversubscribe user mcs", "exclusive": "true false user mcs",
	"show_flag":        "ALL DETAIL MIXED LOCAL SIBLING FEDERATION FUTURE",
	"exit_status":      "INVALID PENDING SUCCESS ERROR SIGNALED CORE_DUMPED",
	"select_type":      "CPU SOCKET CORE BOARD MEMORY ONE_TASK_PER_CORE PACK_NODES CORE_DEFAULT_DIST_BLOCK LLN LINEAR",
	"node_select_type": "AVAILABLE ONE_ROW RESERVED", "core_status": "INVALID UNALLOCATED ALLOCATED IN_USE",
	"node_state": "INVALID UNKNOWN DOWN IDLE ALLOCATED ERROR MIXED FUTURE RESERVED UNDRAIN CLOUD RESUME DRAIN " +
		"COMPLETING NOT_RESPONDING POWERED_DOWN FAIL POWERING_UP MAINTENANCE REBOOT_REQUESTED REBOOT_CANCELED " +
		"POWERING_DOWN DYNAMIC_FUTURE REBOOT_ISSUED PLANNED INVALID_REG POWER_DOWN POWER_UP POWER_DRAIN DYNAMIC_NORM",
	"partition_state": "INACTIVE UNKNOWN UP DOWN DRAIN", "oversubscribe_flag": "force",
	"reservation_flag": "MAINT DAILY WEEKLY IGNORE_JOBS ANY_NODES STATIC PART_NODES OVERLAP SPEC_NODES TIME_FLOAT " +
		"REPLACE ALL_NODES PURGE_COMP WEEKDAY WEEKEND FLEX NO_HOLD_JOBS_AFTER_END MAGNETIC HOURLY REOCCURRING",
	"share_type": "USER ASSOCIATION",
	"kill_flag": "BATCH_JOB ARRAY_TASK FULL_STEPS_ONLY FULL_JOB FEDERATION_REQUEUE HURRY OUT_OF_MEMORY NO_SIBLING_JOBS " +
		"RESERVATION_JOB VERBOSE CRON_JOBS WARNING_SENT",
	"open_mode":   "APPEND TRUNCATE",
	"admin_level": "None Operator Administrator",
	"qos_flag": "PARTITION_MINIMUM_NODE PARTITION_MAXIMUM_NODE PARTITION_TIME_LIMIT ENFORCE_USAGE_THRESHOLD NO_RESERVE " +
		"REQUIRED_RESERVATION DENY_LIMIT OVERRIDE_PARTITION_QOS NO_DECAY USAGE_FACTOR_SAFE RELATIVE",
	"preempt_mode": "DISABLED SUSPEND REQUEUE CANCEL GANG",
	"db_job_flag":  "NONE CLEAR_SCHEDULING NOT_SET STARTED_ON_SUBMIT STARTED_ON_SCHEDULE STARTED_ON_BACKFILL",
}
