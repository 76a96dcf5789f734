// Package volumes has the records of network volumes and the rules by which they change.
//
// Who has a volume that one job at a time may have is not recorded twice: it is the job whose allocation has the
// license that stands for it (storage.OfLicense), from its start until its last node said that nothing of it is left
// there. Package sched plans with these licenses, and a start is refused while another job holds one.
package volumes
