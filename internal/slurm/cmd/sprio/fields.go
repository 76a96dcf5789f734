package sprio

import (
	"cmp"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// row is a row of sprio: a job in one of its partitions, or with Job nil the weights of the factors.
type row struct {
	Job     *client.JobPriority
	Cluster string
	Weights []client.Factor
}

// factor finds a factor of the job. A priority that somebody set has none.
func (r *row) factor(name string) client.Factor {
	list := r.Weights
	if r.Job != nil {
		if list = r.Job.Factors; r.Job.Fixed {
			return client.Factor{}
		}
	}
	for i := range list {
		if list[i].Name == name {
			return list[i]
		}
	}
	return client.Factor{}
}

// weighted is what a factor adds to the priority, or its weight.
func (r *row) weighted(name string) string {
	f := r.factor(name)
	if r.Job == nil {
		f.Points = f.Weight
	}
	return strconv.FormatFloat(f.Points, 'f', 0, 64)
}

func (r *row) normal(name string) string {
	if r.Job == nil {
		return r.weighted(name)
	}
	return strconv.FormatFloat(r.factor(name).Value, 'f', 7, 64)
}

// tres lists the factors of resources.
func (r *row) tres(value func(f *client.Factor) string) string {
	list := r.Weights
	if r.Job != nil {
		list = r.Job.Factors
	}
	var words []string
	for i := range list {
		name, ok := strings.CutPrefix(list[i].Name, "tres ")
		if !ok || r.Job != nil && r.Job.Fixed {
			continue
		}
		f := list[i]
		if r.Job == nil {
			f.Points = f.Weight
		}
		words = append(words, name+"="+value(&f))
	}
	return strings.Join(words, ",")
}

// ofPriority is a value that weights have not.
func ofPriority(value func(j *client.JobPriority) string) func(r *row) string {
	return func(r *row) string {
		if r.Job == nil {
			return ""
		}
		return value(r.Job)
	}
}

// normalPriority is a priority as a part of the largest one; one that somebody set is written as it is.
func normalPriority(j *client.JobPriority) string {
	if j.Fixed {
		return strconv.FormatFloat(float64(j.Now), 'f', 7, 64)
	}
	return strconv.FormatFloat(float64(j.Now)/(1<<32), 'f', 14, 64)
}

func orderJobs[T cmp.Ordered](key func(j *client.JobPriority) T) func(a, b *row) int {
	return func(a, b *row) int { return cmp.Compare(key(a.Job), key(b.Job)) }
}

// factorFields are a factor's two columns: what it adds, and the factor itself.
func factorFields(letter byte, title, name string) []column.Field[row] {
	value := func(r *row) float64 { return r.factor(name).Value }
	compare := func(a, b *row) int { return cmp.Compare(value(a), value(b)) }
	return []column.Field[row]{
		{Letter: letter, Title: title, Value: func(r *row) string { return r.weighted(name) }, Compare: compare},
		{
			Letter: letter + 'a' - 'A', Title: title, Value: func(r *row) string { return r.normal(name) },
			Compare: compare,
		},
	}
}

// fields are the columns of sprio.
var fields = func() []column.Field[row] {
	list := []column.Field[row]{
		{Letter: 'i', Title: "JOBID", Value: func(r *row) string {
			if r.Job == nil {
				return "Weights"
			}
			return strconv.FormatInt(int64(r.Job.ID), 10)
		}, Compare: orderJobs(func(j *client.JobPriority) int64 { return int64(j.ID) })},
		{
			Letter: 'r', Title: "PARTITION",
			Value: ofPriority(func(j *client.JobPriority) string { return string(j.Partition) }),
		},
		{Letter: 'u', Title: "USER", Value: ofPriority(func(j *client.JobPriority) string { return string(j.User) })},
		{Letter: 'o', Title: "ACCOUNT", Value: ofPriority(func(j *client.JobPriority) string { return string(j.Project) })},
		{Letter: 'n', Title: "QOSNAME", Value: ofPriority(func(j *client.JobPriority) string { return string(j.QOS) })},
		{Letter: 'c', Title: "CLUSTER", Value: func(r *row) string { return cmp.Or(r.Cluster, "(null)") }},
		{
			Letter: 'Y', Title: "PRIORITY",
			Value:   ofPriority(func(j *client.JobPriority) string { return strconv.FormatUint(uint64(j.Now), 10) }),
			Compare: orderJobs(func(j *client.JobPriority) uint32 { return j.Now }),
		},
		{
			Letter: 'y', Title: "PRIORITY",
			Value:   ofPriority(normalPriority),
			Compare: orderJobs(func(j *client.JobPriority) uint32 { return j.Now }),
		},
		{Letter: 'S', Title: "SITE", Value: func(r *row) string {
			switch {
			case r.Job == nil:
				return "1"
			case r.Job.Fixed:
				return "0"
			}
			return strconv.FormatInt(r.Job.Site+r.Job.Run, 10)
		}},
		{Letter: 'N', Title: "NICE", Value: ofPriority(func(j *client.JobPriority) string {
			if j.Fixed {
				return "0"
			}
			return strconv.FormatInt(j.Nice, 10)
		}), Compare: orderJobs(func(j *client.JobPriority) int64 { return j.Nice })},
		{Letter: 'T', Title: "TRES", Value: func(r *row) string {
			return r.tres(func(f *client.Factor) string { return strconv.FormatFloat(f.Points, 'f', 0, 64) })
		}},
		{Letter: 't', Title: "TRES", Value: func(r *row) string {
			if r.Job == nil { // as in Slurm, weights have no other form
				return ""
			}
			return r.tres(func(f *client.Factor) string { return strconv.FormatFloat(f.Value, 'g', 2, 64) })
		}},
	}
	for _, f := range []struct {
		letter      byte
		title, name string
	}{
		{'A', "AGE", "age"},
		{'B', "ASSOC", "assoc"},
		{'F', "FAIRSHARE", "fairshare"},
		{'J', "JOBSIZE", "job_size"},
		{'P', "PARTITION", "partition"},
		{'Q', "QOS", "qos"},
	} {
		list = append(list, factorFields(f.letter, f.title, f.name)...)
	}
	return list
}()
