// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"errors"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// MaxPodsOfJobs is the maximum number of pods of all Jobs in [WithPods].
const MaxPodsOfJobs = 1000

// WithPods returns the documents with the pods of each Job in place of the Job, because a gang is often a PodGroup and a Job. If
// Jobs have mistakes, WithPods returns the other documents, and joins a *[SyntaxError] for each mistake.
func WithPods(documents []Document) ([]Document, error) {
	var all []Document
	var mistakes []error
	pods := 0
	for _, d := range documents {
		if d.Object.GroupVersionKind() != batchv1.SchemeGroupVersion.WithKind("Job") {
			all = append(all, d)
			continue
		}
		made, err := podsOf(d, MaxPodsOfJobs-pods)
		if err != nil {
			mistakes = append(mistakes, &SyntaxError{d.Source, d.Line, fmt.Errorf("%s %s: %w", d.Object.GetKind(), d.Object.GetName(), err)})
		}
		all, pods = append(all, made...), pods+len(made)
	}
	return all, errors.Join(mistakes...)
}

// podsOf returns the pods of a Job, if there are at most limit pods.
func podsOf(d Document, limit int) ([]Document, error) {
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(d.Object.Object, job, true); err != nil {
		return nil, err
	}
	count := int(ptr.Deref(job.Spec.Parallelism, 1))
	if count > limit {
		return nil, fmt.Errorf("spec.parallelism: the Jobs have more than %d pods, the limit: use smaller Jobs", MaxPodsOfJobs)
	}
	var pods []Document
	for i := range count {
		pod, err := podOf(job, i)
		if err != nil {
			return nil, err
		}
		pods = append(pods, Document{Source: d.Source, Object: pod, Position: d.Position})
	}
	return pods, nil
}

// completionIndex is the label that the Job controller sets on the pods of an indexed Job. It orders the pods of a group.
const completionIndex = "batch.kubernetes.io/job-completion-index"

// podOf returns a pod of a Job.
func podOf(job *batchv1.Job, index int) (*unstructured.Unstructured, error) {
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
	pod.APIVersion, pod.Kind = corev1.SchemeGroupVersion.String(), "Pod"
	pod.Namespace, pod.Name = job.Namespace, fmt.Sprintf("%s-%d", job.Name, index)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion {
		pod.Labels[completionIndex] = strconv.Itoa(index)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	return &unstructured.Unstructured{Object: object}, err
}
