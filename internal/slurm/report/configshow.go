package report

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
)

// configKeys are the settings that scontrol show config of Slurm 22.05 prints, in its order.
const configKeys = `
	AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageHost AccountingStorageExternalHost
AccountingStorageParameters
	AccountingStoragePort AccountingStorageTRES AccountingStorageType AccountingStorageUser AccountingStoreFlags
AcctGatherEnergyType
	AcctGatherFilesystemType AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType
AllowSpecResourcesUsage AuthAltTypes
	AuthAltParameters AuthInfo AuthType BatchStartTimeout BcastExclude BcastParameters BOOT_TIME BurstBufferType
CliFilterPlugins ClusterName
	CommunicationParameters CompleteWait CoreSpecPlugin CpuFreqDef CpuFreqGovernors CredType DebugFlags
DefMemPerCPU DependencyParameters
	DisableRootJobs EioTimeout EnforcePartLimits Epilog EpilogMsgTime EpilogSlurmctld ExtSensorsType
ExtSensorsFreq FairShareDampeningFactor
	FederationParameters FirstJobId GetEnvTimeout GresTypes GpuFreqDef GroupUpdateForce GroupUpdateTime HASH_VAL
HealthCheckInterval
	HealthCheckNodeState HealthCheckProgram InactiveLimit InteractiveStepOptions JobAcctGatherFrequency
JobAcctGatherType JobAcctGatherParams
	JobCompHost JobCompLoc JobCompPort JobCompType JobCompUser JobContainerType JobCredentialPrivateKey
JobCredentialPublicCertificate
	JobDefaults JobFileAppend JobRequeue JobSubmitPlugins KillOnBadExit KillWait LaunchParameters LaunchType
Licenses LogTimeFormat
	MailDomain MailProg MaxArraySize MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerNode MaxNodeCount MaxStepCount
MaxTasksPerNode MCSPlugin
	MCSParameters MessageTimeout MinJobAge MpiDefault MpiParams MULTIPLE_SLURMD NEXT_JOB_ID NodeFeaturesPlugins
OverTimeLimit PluginDir
	PlugStackConfig PowerParameters PowerPlugin PreemptMode PreemptType PreemptExemptTime PrEpParameters
PrEpPlugins PriorityParameters
	PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityDecayHalfLife PriorityCalcPeriod
PriorityFavorSmall PriorityFlags
	PriorityMaxAge PriorityUsageResetPeriod PriorityType PriorityWeightAge PriorityWeightAssoc
PriorityWeightFairShare PriorityWeightJobSize
	PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData ProctrackType Prolog
PrologEpilogTimeout PrologSlurmctld
	PrologFlags PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram
ReconfigFlags RequeueExit
	RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun ResvProlog
ReturnToService RoutePlugin
	SchedulerParameters SchedulerTimeSlice SchedulerType ScronParameters SelectType SelectTypeParameters SlurmUser
SlurmctldAddr
	SlurmctldDebug SlurmctldHost[0] SlurmctldLogFile SlurmctldPort SlurmctldSyslogDebug SlurmctldPrimaryOffProg
SlurmctldPrimaryOnProg
	SlurmctldTimeout SlurmctldParameters SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort
SlurmdSpoolDir SlurmdSyslogDebug
	SlurmdTimeout SlurmdUser SlurmSchedLogFile SlurmSchedLogLevel SlurmctldPidFile SlurmctldPlugstack SLURM_CONF
SLURM_VERSION SrunEpilog
	SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts SuspendProgram SuspendRate
SuspendTime SuspendTimeout
	SwitchParameters SwitchType TaskEpilog TaskPlugin TaskPluginParam TaskProlog TCPTimeout TmpFS TopologyParam
TopologyPlugin TrackWCKey
	TreeWidth UsePam UnkillableStepProgram UnkillableStepTimeout VSizeFactor WaitTime X11Parameters`

// configHere is what is true here of settings that are no settings here: what Slurm calls plug-ins, and times and
// limits that nobody can change. What stands in neither is not there: (null).
var configHere = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"AccountingStorageHost": "localhost", "AccountingStoragePort": "0",
		"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageUser": "N/A",
		"AcctGatherEnergyType": "acct_gather_energy/none", "AcctGatherFilesystemType": "acct_gather_filesystem/none",
		"AcctGatherInterconnectType": "acct_gather_interconnect/none", "AcctGatherNodeFreq": "0 sec",
		"AcctGatherProfileType":   "acct_gather_profile/none",
		"AllowSpecResourcesUsage": "No", "AuthType": "auth/local", "BatchStartTimeout": "0 sec",
		"CompleteWait": "0 sec", "CoreSpecPlugin": "core_spec/none",
		"CpuFreqDef": "Unknown", "CpuFreqGovernors": "(null)", "CredType": "cred/tls", "DisableRootJobs": "No",
		"EioTimeout": "0", "EpilogMsgTime": "0 usec",
		"ExtSensorsType": "ext_sensors/none", "ExtSensorsFreq": "0 sec", "FirstJobId": "1", "GetEnvTimeout": "120 sec",
		"GpuFreqDef": "(null)", "GroupUpdateForce": "1",
		"GroupUpdateTime": "0 sec", "HASH_VAL": "Match", "HealthCheckInterval": "0 sec", "HealthCheckNodeState": "ANY",
		"InteractiveStepOptions": "(null)",
		"JobAcctGatherFrequency": "0", "JobAcctGatherType": "jobacct_gather/cgroup", "JobCompHost": "localhost",
		"JobCompLoc": "(null)", "JobCompPort": "0",
		"JobCompType": "jobcomp/none", "JobCompUser": "root", "JobContainerType": "job_container/none",
		"JobFileAppend": "0", "JobRequeue": "1", "KillOnBadExit": "0",
		"LaunchType": "launch/bireme", "LogTimeFormat": "iso8601_ms", "MaxDBDMsgs": "0",
		"MaxJobId": "9223372036854775807", "MaxMemPerNode": "UNLIMITED",
		"MaxStepCount": "2147483646", "MCSPlugin": "mcs/none", "MessageTimeout": "30 sec", "MinJobAge": "300 sec",
		"MULTIPLE_SLURMD": "Yes",
		"OverTimeLimit":   "0 min", "PluginDir": "(null)", "PowerPlugin": "", "PrEpPlugins": "prep/script",
		"PrivateData": "none", "PropagatePrioProcess": "0",
		"PropagateResourceLimits": "ALL", "ResumeRate": "0 nodes/min", "ResumeTimeout": "0 sec",
		"ReturnToService": "2", "RoutePlugin": "route/none",
		"SchedulerTimeSlice": "0 sec", "SchedulerType": "sched/backfill", "SelectType": "select/cons_tres",
		"SlurmctldDebug": "info", "SlurmctldTimeout": "0 sec",
		"SlurmdDebug": "info", "SlurmdUser": "root(0)", "SlurmSchedLogLevel": "0", "SrunPortRange": "0-0",
		"SuspendRate": "0 nodes/min", "SuspendTime": "INFINITE",
		"SuspendTimeout": "0 sec", "SwitchType": "switch/none", "TaskPlugin": "task/cgroup",
		"TaskPluginParam": "(null type)", "TCPTimeout": "0 sec", "TrackWCKey": "No",
		"TreeWidth": "0", "UsePam": "No", "VSizeFactor": "0 percent", "WaitTime": "0 sec", "PriorityParameters": "(null)",
	}
})

// configUnits follow the values of settings that the server gives as numbers.
var configUnits = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"HealthCheckInterval": " sec", "InactiveLimit": " sec", "KillWait": " sec", "ResvOverRun": " min",
		"SlurmdTimeout": " sec", "UnkillableStepTimeout": " sec",
	}
})

// ShowConfig is scontrol show config: Slurm's settings in their order, then those that are only ours.
func ShowConfig(set map[string]string) string {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "%-23s = %s\n", key, value) }
	for key := range strings.FieldsSeq(configKeys) {
		value, ok := set[key]
		switch here, known := configHere()[key]; {
		case ok && value != "":
			value += configUnits()[key]
		case known:
			value = here
		case key == "PriorityFlags":
			value = ""
		default:
			value = cmp.Or(value, "(null)")
		}
		line(key, value)
	}
	return b.String()
}
