package manual

import "sync"

// wordCommand is what the help of a command that takes words says of them.
type wordCommand struct {
	commands [][2]string
	entities string
	more     string
}

var words = sync.OnceValue(func() map[string]wordCommand {
	return map[string]wordCommand{
		"scontrol": {commands: scontrolWords, entities: `"aliases", "bbstat", "burstbuffer", "config", "daemons", ` +
			`"dwstat", "federation", "frontend", "hostlist", "hostlistsorted", "hostnames", "job", "licenses", "node", ` +
			`"partition", "reservation", "slurmd", "step", or "topology"`},
		"sacctmgr": {commands: sacctmgrWords, entities: `"account", "association", "cluster", "configuration", ` +
			`"coordinator", "event", "federation", "problem", "qos", "reservation", "resource", "RunawayJobs", ` +
			`"stats", "transaction", "tres", "user", or "wckey"`, more: sacctmgrSpecs},
		"sreport": {commands: sreportWords, entities: `"cluster", "job", "reservation", or "user"`, more: sreportReports},
	}
})

var scontrolWords = [][2]string{
	{"abort", "refused: the server is stopped where it was started"},
	{"all", "show hidden partitions too"},
	{"cancel_reboot <nodes>", "undo a reboot that has not begun"},
	{"cluster <name>", "commands are for this cluster; there is one"},
	{"completing", "jobs that have ended and still hold nodes"},
	{"create <ENTITY> <SPECS>", "make a reservation, a partition or a node"},
	{"delete <ENTITY>=<ID>", "delete a reservation, a partition or a node"},
	{"details", "more of each record"},
	{"errnumstr <number>", "what the number of an error means"},
	{"exit", "end scontrol"},
	{"fsdampeningfactor <n>", "refused: a setting of the server"},
	{"getent <node>", "users that nss_slurm serves on a node: none"},
	{"help", "print this text"},
	{"hide", "do not show hidden partitions"},
	{"hold <jobs>", "keep jobs from starting"},
	{"listpids [job[.step] [node]]", "processes of steps on this node"},
	{"notify <job> <message>", "refused: messages do not reach jobs"},
	{"oneliner", "a line a record"},
	{"pidinfo <pid>", "the job of a process and the time it has left"},
	{"ping", "whether the server answers"},
	{"power <up|down> [asap|force] <nodes>", "wake nodes, or put them to sleep"},
	{"quit", "end scontrol"},
	{"reboot [ASAP] <nodes>", "reboot nodes when they are idle, or drain them first"},
	{"reconfigure", "re-read configuration files."},
	{"release <jobs>", "let jobs that are held start"},
	{"requeue <jobs>", "put jobs back in the queue"},
	{"requeuehold <jobs>", "put jobs back in the queue and hold them"},
	{"resume <jobs>", "continue jobs that are suspended"},
	{"show <ENTITY> [<ID>]", "show records"},
	{"schedloglevel <level>", "refused: a setting of the server"},
	{"setdebug <level>", "refused: a setting of the server"},
	{"setdebugflags [+|-]<flag>", "refused: a setting of the server"},
	{"shutdown", "refused: the server is stopped where it was started"},
	{"suspend <jobs>", "stop jobs for a while"},
	{"takeover", "have the server that leads let another one lead"},
	{"token [lifespan=s]", "make a token for the REST interface"},
	{"top <jobs>", "put jobs before the others of their user"},
	{"uhold <jobs>", "hold jobs so that their users may release them"},
	{"update <SPECS>", "change jobs, nodes, partitions, reservations or steps"},
	{"version", "display tool version number."},
	{"wait_job <job>", "wait until the nodes of a job are ready"},
	{"write batch_script <job>", "write the script of a job to a file"},
	{"!!", "repeat the last command"},
}

var sacctmgrWords = [][2]string{
	{"add <ENTITY> <SPECS>", "add records; create is the same"},
	{"archive <dump|load>", "refused: the setting retention says how long records stay"},
	{"clear stats", "set the counters of the server to 0"},
	{"delete <ENTITY> where <SPECS>", "delete records; remove is the same"},
	{"dump <cluster> [file=<name>]", "write accounts, users and limits to a file"},
	{"exit", "end sacctmgr"},
	{"help", "print this text"},
	{"list <ENTITY> [<SPECS>]", "the same as show"},
	{"load <file> [<SPECS>]", "read what dump wrote; clean is refused"},
	{"modify <ENTITY> <SPECS>", "change records"},
	{"quit", "end sacctmgr"},
	{"show <ENTITY> [<SPECS>]", "list records"},
	{"version", "display tool version number."},
	{"!!", "repeat the last command"},
}

const sacctmgrSpecs = `  <SPECS> are different for each command entity pair.
       list account        - Clusters=, Descriptions=, Format=, Names=, Organizations=, Parents=, WithCoor,
                             WithSubAccounts, and WithAssoc
       add account         - Clusters=, DefaultQOS=, Description=, Fairshare=, Names=, Organization=, Parent=,
                             QosLevel=, and limits
       modify account      - (set) DefaultQOS=, Description=, Fairshare=, Organization=, Parent=, QosLevel=,
                             and limits
       delete account      - Clusters=, Descriptions=, Names=, Organizations=, and Parents=

       list associations   - Accounts=, Clusters=, Format=, ID=, OnlyDefaults, Partitions=, Parent=, QOS=, Tree,
                             Users=, WithSubAccounts, WithDeleted, WOLimits, WOPInfo, and WOPLimits

       list cluster        - Format=, Names=, and WOLimits
       add cluster         - refused: a server keeps the records of one cluster
       modify cluster      - refused
       delete cluster      - refused

       add coordinator     - Accounts=, and Names=
       delete coordinator  - Accounts=, and Names=

       list events         - All_Clusters, All_Time, Clusters=, End=, Events=, Format=, Nodes=, Reason=, Start=,
                             States=, and User=

       modify job          - refused: records of finished jobs are not changed

       list qos            - Descriptions=, Format=, IDs=, Names=, and WithDeleted
       add qos             - Description=, Flags=, GraceTime=, Names=, Preempt=, PreemptMode=, Priority=,
                             UsageFactor=, UsageThreshold=, and limits
       modify qos          - (set) the same
       delete qos          - Descriptions=, IDs=, and Names=

       list resource       - Clusters=, Format=, and Names=; there are none
       add resource        - refused: licenses are settings of the cluster (Licenses= in slurm.conf)
       modify resource     - refused
       delete resource     - refused

       list transactions   - Accounts=, Action=, Actor=, Clusters=, Format=, User=, and WithAssoc
       list tres           - ID=, Name=, Type=, and WithDeleted

       list user           - AdminLevel=, DefaultAccount=, DefaultWCKey=, Format=, Names=, QosLevel=, WithAssoc,
                             WithCoordinators, and WithDeleted
       add user            - Accounts=, AdminLevel=, Clusters=, DefaultAccount=, DefaultQOS=, DefaultWCKey=,
                             Fairshare=, Names=, QosLevel=, WCKeys=, and limits
       modify user         - (set) AdminLevel=, DefaultAccount=, DefaultQOS=, DefaultWCKey=, Fairshare=, QosLevel=,
                             and limits
       delete user         - Accounts=, AdminLevel=, Clusters=, DefaultAccount=, Names=, and WCKeys=

       list wckey          - Clusters=, Format=, Names=, User=, and WithDeleted
`

var sreportWords = [][2]string{
	{"cluster <REPORT> [<OPTIONS>]", "usage of the cluster by accounts, users and WCKeys"},
	{"exit", "end sreport"},
	{"help", "print this text"},
	{"job <REPORT> [<OPTIONS>]", "usage of jobs by their size"},
	{"nonparsable", "print tables again"},
	{"parsable", "print bars between columns"},
	{"quiet", "print no messages"},
	{"quit", "end sreport"},
	{"reservation <REPORT> [<OPTIONS>]", "usage of reservations"},
	{"time <time_format>", "the unit in which usage is printed"},
	{"user <REPORT> [<OPTIONS>]", "the users with the greatest usage"},
	{"verbose", "print more"},
	{"version", "display tool version number."},
	{"!!", "repeat the last command"},
}

const sreportReports = `  <REPORT> is different for each type:
       cluster      AccountUtilizationByUser, UserUtilizationByAccount, UserUtilizationByWckey, Utilization,
                    WCKeyUtilizationByUser
       job          SizesByAccount, SizesByAccountAndWckey, SizesByWckey
       reservation  Utilization
       user         TopUsage

  <OPTIONS> are Start=, End=, Format=, Clusters=, Accounts=, Users=, and those of the report. Usage is of whole
  hours; without Start= and End= it is that of yesterday.
`
