// Package volume makes, mounts and removes network volumes on a node. What is to be done comes from the server, whose
// administrator wrote it into the settings; names of projects and volumes are all that is a user's, and they are
// checked.
//
//	driver   a volume is                              mounted as
//	shared   a folder PATH/PROJECT/NAME               bind mount of the folder
//	image    a file PATH/PROJECT/NAME.img             loop mount of its file system
//	mount    a folder PROJECT/NAME of the source      bind mount of the folder in a mount of the source
//
// Each job has mounts of its own, in a directory of its own, so that none is left when the job is gone. The folder of a
// project can be entered by root alone: who is no job with the volume does not come to its files. All mounts have
// nosuid and nodev: what a container's root leaves in a volume is nobody's way to become root on the node. No path is
// followed // out of where it is: links in it are refused.
package volume
