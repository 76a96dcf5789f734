package jobsubmit

// Slurm's numbers for what is not set and what has no limit.
const (
	noVal8   = 254
	noVal16  = 65534
	noVal    = 4294967294
	infinite = 4294967295
	noVal64  = 18446744073709551614.0

	memPerCPU  = 1 << 63 // in pn_min_memory
	niceOffset = 2147483648
)

// constants are the numbers of the table slurm, as Slurm 22.05 has them, and further ones of its errors.
var constants = map[string]float64{
	"SUCCESS": 0, "ERROR": -1, "FAILURE": -1,
	"ESLURM_ACCESS_DENIED": 2002, "ESLURM_ACCOUNTING_POLICY": 2050, "ESLURM_INVALID_ACCOUNT": 2045,
	"ESLURM_INVALID_LICENSES": 2048, "ESLURM_INVALID_NODE_COUNT": 2006, "ESLURM_INVALID_TIME_LIMIT": 2051,
	"ESLURM_JOB_MISSING_SIZE_SPECIFICATION": 2008, "ESLURM_MISSING_TIME_LIMIT": 8000,
	"ESLURM_INVALID_PARTITION_NAME": 2000, "ESLURM_INVALID_QOS": 2066, "ESLURM_INVALID_GRES": 2072,
	"ESLURM_INVALID_FEATURE": 2029, "ESLURM_NOT_SUPPORTED": 2036, "ESLURM_TOO_MANY_REQUESTED_CPUS": 2005,
	"ESLURM_RESERVATION_INVALID": 2053, "ESLURM_USER_ID_MISSING": 2010,

	"ALLOC_SID_ADMIN_HOLD": 1, "ALLOC_SID_USER_HOLD": 2,
	"INFINITE": infinite, "INFINITE64": 18446744073709551615.0, "NO_VAL": noVal, "NO_VAL8": noVal8,
	"NO_VAL16": noVal16, "NO_VAL64": noVal64, "MEM_PER_CPU": memPerCPU, "NICE_OFFSET": niceOffset,
	"JOB_SHARED_NONE": sharedNone, "JOB_SHARED_OK": sharedOK, "JOB_SHARED_USER": sharedUser, "JOB_SHARED_MCS": sharedMCS,
	"SHARED_FORCE":   32768,
	"MAIL_JOB_BEGIN": 1, "MAIL_JOB_END": 2, "MAIL_JOB_FAIL": 4, "MAIL_JOB_REQUEUE": 8, "MAIL_JOB_TIME100": 16,
	"MAIL_JOB_TIME890": 32, "MAIL_JOB_TIME90": 32, "MAIL_JOB_TIME80": 64, "MAIL_JOB_TIME50": 128,
	"MAIL_JOB_STAGE_OUT": 256, "MAIL_INVALID_DEPEND": 1024,
	"KILL_INV_DEP": 1, "NO_KILL_INV_DEP": 2, "SPREAD_JOB": flagSpread, "USE_MIN_NODES": flagMinNodes,
	"GRES_ENFORCE_BIND": 16, "GRES_DISABLE_BIND": 524288,
}

// The values of job_desc.shared.
const (
	sharedNone = 0
	sharedOK   = 1
	sharedUser = 2
	sharedMCS  = 3
)

// The bits of job_desc.bitflags that are known here.
const (
	flagSpread   = 256
	flagMinNodes = 512
)

// mailBits are the bits of job_desc.mail_type by the words of --mail-type.
var mailBits = []struct {
	word string
	bit  int
}{
	{"BEGIN", 1},
	{"END", 2},
	{"FAIL", 4},
	{"REQUEUE", 8},
	{"TIME_LIMIT", 16},
	{"TIME_LIMIT_90", 32},
	{"TIME_LIMIT_80", 64},
	{"TIME_LIMIT_50", 128},
	{"STAGE_OUT", 256},
	{"ARRAY_TASKS", 512},
	{"INVALID_DEPEND", 1024},
}
