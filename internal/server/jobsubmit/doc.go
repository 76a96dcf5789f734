// Package jobsubmit runs what a site lets decide on submissions and changes of jobs, in the place of Slurm's job_submit
// plug-ins (JobSubmitPlugins): a script in Lua, and two small ones that are built in.
//
//	sbatch, bireme, dstack, REST ──► API ──► Plugins.Submit ──► engine (admission)
//	                                            │ may change, refuse, and say something to the submitter
//	                                            ▼
//	                          job_submit.lua: slurm_job_submit(job_desc, part_list, submit_uid)
//	                                          slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
//
// It stands before admission and outside the engine: what it makes of a job is checked like any other submission.
//
// One Lua state serves all calls, one after the other, as in slurmctld, so globals of the script last from call to
// call. The script is the site's own and trusted, but what it works on comes from users. So each call is bounded: in
// instructions (counted by the context that the interpreter asks before each), in bytes of the texts it makes (counted
// by the functions that make texts; the operator .. is rewritten to a call of one when the script is compiled), in
// steps of matching patterns (which has code of its own for that), and in time. A call that exceeds a bound refuses the
// job, and another state is made. Should a call not end in spite of that, it keeps its goroutine, and jobs are refused
// at once until it does.
//
// Scripts get Lua 5.1 without files, processes, modules and coroutines: the library functions that are missing refuse
// the job instead of being nil, so that a script that needs them does not let everything pass by failing.
package jobsubmit
