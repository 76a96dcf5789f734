package schema

const historyTable = `
object job
	account 38:string string
	comment.administrator 38:string/null string
	comment.job 38:string/null string
	comment.system 38:string/null string
	allocation_nodes 38:int int32
	array.job_id 38:int int32
	array.limits.max.running.tasks 38:int int32
	array.task 38:string/null string
	array.task_id 38:int/null uint32?
	association @assoc_short 38:@assoc_short
	block string
	cluster 38:string string
	constraints 38:string string
	container 38:string/null string
	derived_exit_code 38:@process_exit_code_verbose @process_exit_code_verbose
	time.elapsed 38:int int32
	time.eligible 38:int int64
	time.end 38:int int64
	time.planned 41-:uint64?
	time.start 38:int int64
	time.submission 38:int int64
	time.suspended 38:int int32
	time.system.seconds 38:int int64
	time.system.microseconds 38:int int64
	time.limit 38:int/null uint32?
	time.total.seconds 38:int int64
	time.total.microseconds 38:int int64
	time.user.seconds 38:int int64
	time.user.microseconds 38:int int64
	exit_code 38:@process_exit_code_verbose @process_exit_code_verbose
	extra string
	failed_node string
	flags 38:[string] [%db_job_flag]
	group 38:string string
	het.job_id 38:int int32
	het.job_offset 38:int/null uint32?
	job_id 38:int int32
	name 38:string string
	licenses string
	mcs.label 38:string string
	nodes 38:string string
	partition 38:string string
	hold bool
	priority 38:int uint32?
	qos 38:string string
	qosreq 42-:string
	required.CPUs 38:int int32
	required.memory 38:int
	required.memory_per_cpu uint64?
	required.memory_per_node uint64?
	kill_request_user 38:string/null string
	restart_cnt 42-:int32
	reservation.id 38:int int32
	reservation.name 38:string/null string
	reservation.requested 43:string
	script string
	segment_size 43:int32
	stdin_expanded 41-:string
	stdout_expanded 41-:string
	stderr_expanded 41-:string
	stdout 41-:string
	stderr 41-:string
	stdin 41-:string
	state.current 38:string [%job_state]
	state.reason 38:string string
	steps 38:[@step] [@step]
	submit_line string
	tres.allocated 38:[@tres] [@tres]
	tres.requested 38:[@tres] [@tres]
	used_gres string
	user 38:string string
	wckey 38:@wckey_tag_struct @wckey_tag_struct
	working_directory 38:string string
object wckey_tag_struct
	wckey 38:string string
	flags 38:[string] [string]
object step
	time.elapsed 38:int int32
	time.end 38:int uint64?
	time.start 38:int uint64?
	time.suspended 38:int int32
	time.system.seconds 38:int int64
	time.system.microseconds 38:int int32
	time.limit 43:uint32?
	time.total.seconds 38:int int64
	time.total.microseconds 38:int int32
	time.user.seconds 38:int int64
	time.user.microseconds 38:int int32
	exit_code 38:@process_exit_code_verbose @process_exit_code_verbose
	nodes.count 38:int int32
	nodes.range 38:string string
	nodes.list 38:[string] [string]
	tasks.count 38:int int32
	pid 38:string/null string
	CPU.requested_frequency.min 38:int uint32?
	CPU.requested_frequency.max 38:int uint32?
	CPU.governor 38:string string
	kill_request_user 38:string/null string
	state 38:string [%job_state]
	statistics.CPU.actual_frequency 38:int int64
	statistics.energy.consumed 38:int uint64?
	step.job_id 38:int
	step.id 38:string string
	step.name 38:string string
	step.stderr 43:string
	step.stdin 43:string
	step.stdout 43:string
	step.stderr_expanded 43:string
	step.stdin_expanded 43:string
	step.stdout_expanded 43:string
	task.distribution 38:string string
	tres.requested.max 38:[@tres] [@tres]
	tres.requested.min 38:[@tres] [@tres]
	tres.requested.average 38:[@tres] [@tres]
	tres.requested.total 38:[@tres] [@tres]
	tres.consumed.max 38:[@tres] [@tres]
	tres.consumed.min 38:[@tres] [@tres]
	tres.consumed.average 38:[@tres] [@tres]
	tres.consumed.total 38:[@tres] [@tres]
	tres.allocated 38:[@tres] [@tres]
object tres
	type 38:string string
	name 38:string/null string
	id 38:int int32
	count 38:int int64
object openapi_slurmdbd_jobs_resp
	jobs 38:[@job] [@job]
`

const peopleTable = `
object assoc_short
	account 38:string string
	cluster 38:string string
	partition 38:string/null string
	user 38:string string
	id int32
object coord
	name string
	direct bool
object account
	associations [@assoc_short]
	coordinators [@coord]
	description string
	name string
	organization string
	flags [string]
object openapi_accounts_resp
	accounts [@account]
object user
	administrator_level [%admin_level]
	associations [@assoc_short]
	coordinators [@coord]
	default.account string
	default.wckey string
	flags [string]
	name string
	old_name string
	wckeys [@wckey]
object openapi_users_resp
	users [@user]
object accounting
	allocated.seconds int64
	id int32
	id_alt 42-:int32
	start int64
	TRES @tres
object assoc
	accounting [@accounting]
	account string
	cluster string
	comment string
	default.qos string
	flags [string]
	max.jobs.per.count uint32?
	max.jobs.per.accruing uint32?
	max.jobs.per.submitted uint32?
	max.jobs.per.wall_clock uint32?
	max.jobs.active uint32?
	max.jobs.accruing uint32?
	max.jobs.total uint32?
	max.tres.total [@tres]
	max.tres.group.minutes [@tres]
	max.tres.group.active [@tres]
	max.tres.minutes.total [@tres]
	max.tres.minutes.per.job [@tres]
	max.tres.per.job [@tres]
	max.tres.per.node [@tres]
	max.per.account.wall_clock uint32?
	id 40:@assoc_short 41-:int32
	is_default bool
	lineage string
	min.priority_threshold uint32?
	parent_account string
	partition string
	priority uint32?
	qos [string]
	shares_raw int32
	user string
object openapi_assocs_resp
	associations [@assoc]
object qos
	description string
	flags [%qos_flag]
	id int32
	limits.grace_time int32
	limits.max.active_jobs.accruing uint32?
	limits.max.active_jobs.count uint32?
	limits.max.tres.total [@tres]
	limits.max.tres.minutes.total 42-:[@tres]
	limits.max.tres.minutes.per.qos [@tres]
	limits.max.tres.minutes.per.job [@tres]
	limits.max.tres.minutes.per.account [@tres]
	limits.max.tres.minutes.per.user [@tres]
	limits.max.tres.per.account [@tres]
	limits.max.tres.per.job [@tres]
	limits.max.tres.per.node [@tres]
	limits.max.tres.per.user [@tres]
	limits.max.wall_clock.per.qos uint32?
	limits.max.wall_clock.per.job uint32?
	limits.max.jobs.count 42-:uint32?
	limits.max.jobs.active_jobs.per.account uint32?
	limits.max.jobs.active_jobs.per.user uint32?
	limits.max.jobs.per.account uint32?
	limits.max.jobs.per.user uint32?
	limits.max.accruing.per.account uint32?
	limits.max.accruing.per.user uint32?
	limits.factor double?
	limits.min.priority_threshold uint32?
	limits.min.tres.per.job [@tres]
	name string
	preempt.list [string]
	preempt.mode [%preempt_mode]
	preempt.exempt_time uint32?
	priority uint32?
	usage_factor double?
	usage_threshold double?
object openapi_slurmdbd_qos_resp
	qos [@qos]
object cluster_rec
	controller.host string
	controller.port int32
	flags [string]
	name string
	nodes string
	select_plugin string
	associations.root @assoc_short
	rpc_version int32
	tres [@tres]
object openapi_clusters_resp
	clusters [@cluster_rec]
object wckey
	accounting [@accounting]
	cluster string
	id int32
	name string
	user string
	flags [string]
object openapi_wckey_resp
	wckeys [@wckey]
object openapi_tres_resp
	TRES [@tres]
object instance
	cluster string
	extra string
	instance_id string
	instance_type string
	node_name string
	time.time_end int64
	time.time_start int64
object openapi_instances_resp
	instances [@instance]
object openapi_slurmdbd_config_resp
	clusters [@cluster_rec]
	tres [@tres]
	accounts [@account]
	users [@user]
	qos [@qos]
	wckeys [@wckey]
	associations [@assoc]
	instances [@instance]
object stats_rec
	time_start int64
	rollups 40:[object] 41-:@rollup_stats
	RPCs [@stats_rpc]
	users [@stats_user]
object rollup_stats
	hourly @rollup_times
	daily @rollup_times
	monthly @rollup_times
object rollup_times
	count int32
	last_run int64
	duration.last int64
	duration.max int64
	duration.time int64
object stats_rpc
	rpc string
	count int32
	time.average int64
	time.total int64
object stats_user
	user string
	count int32
	time.average int64
	time.total int64
object openapi_slurmdbd_stats_resp
	statistics @stats_rec
object slurmdbd_ping
	hostname string
	responding bool
	latency int64
	primary bool
object openapi_slurmdbd_ping_resp
	pings [@slurmdbd_ping]
object openapi_accounts_removed_resp
	removed_accounts [string]
object openapi_assocs_removed_resp
	removed_associations [string]
object openapi_clusters_removed_resp
	deleted_clusters [string]
object openapi_slurmdbd_qos_removed_resp
	removed_qos [string]
object openapi_wckey_removed_resp
	deleted_wckeys [string]
object openapi_users_add_cond_resp_str
	added_users string
object openapi_accounts_add_cond_resp_str
	added_accounts string
object assoc_rec_set
	comment string
	defaultqos string
	grpjobs uint32?
	grpjobsaccrue uint32?
	grptres [@tres]
	grptresmins [@tres]
	grptresrunmins [@tres]
	maxjobsaccrue uint32?
	maxtresminsperjob [@tres]
	maxtresrunmins [@tres]
	maxtresperjob [@tres]
	maxtrespernode [@tres]
	minpriothresh uint32?
	grpsubmitjobs uint32?
	grpwall uint32?
	maxjobs uint32?
	maxsubmitjobs uint32?
	maxwalldurationperjob uint32?
	parent string
	priority uint32?
	qoslevel [string]
	fairshare int32
object accounts_add_cond
	accounts [string]
	association @assoc_rec_set
	clusters [string]
object account_short
	description string
	organization string
object openapi_accounts_add_cond_req
	association_condition @accounts_add_cond
	account @account_short
object users_add_cond
	accounts [string]
	association @assoc_rec_set
	clusters [string]
	partitions [string]
	users [string]
	wckeys [string]
object user_short
	adminlevel [%admin_level]
	defaultaccount string
	defaultwckey string
object openapi_users_add_cond_req
	association_condition @users_add_cond
	user @user_short
`
