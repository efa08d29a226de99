// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setpublisher tells the hub of a fleet how many sets of devices fit in a cluster, as package setscores has it.
package setpublisher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
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

	// written was stored last, and is valid until then.
	written    *published
	validUntil time.Time
}

// published is what a hub gets.
type published struct {
	quantities map[string]string
	scores     []any
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
	next := publishedOf(last.Report)
	if reflect.DeepEqual(next, p.written) && (p.validUntil.Sub(p.Clock.Now()) > validity/2 || !validUntil.After(p.validUntil)) {
		return nil
	}
	if err := p.write(ctx, next, validUntil); err != nil {
		return err
	}
	p.written, p.validUntil = next, validUntil
	p.Observe(metrics.PublicationWritten)
	return nil
}

func (p *Publisher) write(ctx context.Context, next *published, validUntil time.Time) error {
	// Credentials on the hub are renewed: the file is read for each write, of which there are few.
	hub, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(hub)
	if err != nil {
		return err
	}
	quantities, err := json.Marshal(next.quantities)
	if err != nil {
		return err
	}
	score := &unstructured.Unstructured{}
	score.SetGroupVersionKind(scoresResource.GroupVersion().WithKind("AddOnPlacementScore"))
	score.SetNamespace(p.Cluster)
	score.SetName(setscores.Name)
	score.SetAnnotations(map[string]string{setscores.QuantitiesAnnotation: string(quantities)})
	options := metav1.ApplyOptions{FieldManager: "celset-scheduler", Force: true}
	scores := client.Resource(scoresResource).Namespace(p.Cluster)
	if _, err := scores.Apply(ctx, setscores.Name, score, options); err != nil {
		return err
	}
	score.SetAnnotations(nil)
	score.Object["status"] = map[string]any{"validUntil": validUntil.UTC().Format(time.RFC3339), "scores": next.scores}
	_, err = scores.ApplyStatus(ctx, setscores.Name, score, options)
	return err
}

// publishedOf are the numbers of a report that are known. A report has few shapes, those that most claims ask for.
func publishedOf(report *fragmentation.Report) *published {
	result := &published{quantities: map[string]string{}, scores: []any{}}
	for i := range report.Shapes {
		shape := &report.Shapes[i]
		for state, count := range metrics.CountsOf(shape, report.NotPacked == "") {
			name := setscores.Key{Class: shape.Class, Constraint: shape.Constraint, Devices: shape.Devices, State: setscores.State(state)}.String()
			if _, ok := setscores.Parse(name); ok {
				result.quantities[name] = strconv.Itoa(count.Sets)
				result.scores = append(result.scores, map[string]any{"name": name, "value": int64(setscores.Value(count.Sets))})
			}
		}
	}
	slices.SortFunc(result.scores, func(a, b any) int {
		return cmp.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
	})
	return result
}
