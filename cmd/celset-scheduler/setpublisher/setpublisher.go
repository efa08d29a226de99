// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setpublisher tells the hub of a fleet how many sets of devices fit in a cluster, as package setscores has it.
package setpublisher

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/plugin"
	"github.com/celset/celset/plugin/metrics"
)

const (
	// look is how often it is looked for new numbers, timeout how long one try to write them may take.
	look    = 10 * time.Second
	timeout = 30 * time.Second
	// intervals is for how many intervals between counts the numbers are valid.
	intervals = 3
)

var scoresResource = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1alpha1", Resource: "addonplacementscores"}

// Publisher writes on a hub how many sets of devices fit. What is counted is what the metrics show: nothing is counted for it, and
// no pod waits for it.
type Publisher struct {
	// Kubeconfig is the file for the hub, Cluster the name that this cluster has there.
	Kubeconfig, Cluster string
	// Counted is what was counted last, nil if that is not known.
	Counted func() *metrics.Fragmentation
	// Interval is how often sets are counted.
	Interval time.Duration
	Observe  func(metrics.Publication)
	Clock    clock.PassiveClock

	// written are the numbers that were stored last, by the name of their score, and are valid until then.
	written    map[string]int
	validUntil time.Time
}

// Run publishes until the context ends. What was published last expires then.
func (p *Publisher) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := p.Publish(ctx); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			p.Observe(metrics.PublicationFailed)
			klog.FromContext(ctx).Error(err, "How many sets of devices fit could not be published on the hub, and what was published expires", "cluster", p.Cluster, "validUntil", p.validUntil)
		}
	}, look)
}

// Publish writes what was counted, if it is something else than what was written, or that is valid for less than half of its time.
func (p *Publisher) Publish(ctx context.Context) error {
	last := p.Counted()
	if last == nil {
		return nil
	}
	validity := intervals * max(p.Interval, plugin.FragmentationRest*last.Took)
	validUntil := last.At.Add(validity)
	next := numbersOf(last.Report)
	if maps.Equal(next, p.written) && (p.validUntil.Sub(p.Clock.Now()) > validity/2 || !validUntil.After(p.validUntil)) {
		return nil
	}
	if err := p.write(ctx, next, validUntil); err != nil {
		return err
	}
	p.written, p.validUntil = next, validUntil
	p.Observe(metrics.PublicationWritten)
	return nil
}

func (p *Publisher) write(ctx context.Context, numbers map[string]int, validUntil time.Time) error {
	// Credentials on the hub are renewed: the file is read for each write, of which there are few.
	hub, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(hub)
	if err != nil {
		return err
	}
	scores, quantities := []any{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		scores = append(scores, map[string]any{"name": name, "value": int64(setscores.Value(numbers[name]))})
		quantities[name] = strconv.Itoa(numbers[name])
	}
	annotation, err := json.Marshal(quantities)
	if err != nil {
		return err
	}
	score := &unstructured.Unstructured{}
	score.SetGroupVersionKind(scoresResource.GroupVersion().WithKind("AddOnPlacementScore"))
	score.SetNamespace(p.Cluster)
	score.SetName(setscores.Name)
	score.SetAnnotations(map[string]string{setscores.QuantitiesAnnotation: string(annotation)})
	options := metav1.ApplyOptions{FieldManager: "celset-scheduler", Force: true}
	objects := client.Resource(scoresResource).Namespace(p.Cluster)
	if _, err := objects.Apply(ctx, setscores.Name, score, options); err != nil {
		return err
	}
	score.SetAnnotations(nil)
	score.Object["status"] = map[string]any{"validUntil": validUntil.UTC().Format(time.RFC3339), "scores": scores}
	_, err = objects.ApplyStatus(ctx, setscores.Name, score, options)
	return err
}

// numbersOf are those of a report that are known, by the name of their score. A report has few shapes, those that most claims ask for.
func numbersOf(report *fragmentation.Report) map[string]int {
	numbers := map[string]int{}
	for i := range report.Shapes {
		shape := &report.Shapes[i]
		for state, count := range metrics.CountsOf(shape, report.NotPacked == "") {
			name := setscores.Key{Class: shape.Class, Constraint: shape.Constraint, Devices: shape.Devices, State: setscores.State(state)}.String()
			if _, ok := setscores.Parse(name); ok {
				numbers[name] = count.Sets
			}
		}
	}
	return numbers
}
