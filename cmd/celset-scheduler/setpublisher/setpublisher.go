// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setpublisher publishes on a hub how many more sets of devices fit in this cluster, as scores in the format of package
// setscores.
package setpublisher

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/printable"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/observe"
)

const (
	// look is the interval between checks for new counts. timeout limits one attempt to write them to the hub.
	look    = 10 * time.Second
	timeout = 30 * time.Second
	// intervals is the number of counting intervals after which a published number expires.
	intervals = 3
	// maxAnswer is the number of bytes that are read of a response of the hub. Only error responses are decoded, because a decoded
	// object can take a hundred times the memory of its encoding. maxLogged is the number of bytes of an error that are logged.
	maxAnswer, maxLogged = 64 << 10, 1 << 10
)

var scoresVersion = schema.GroupVersion{Group: "cluster.open-cluster-management.io", Version: "v1alpha1"}

// Publisher writes numbers of fitting sets to a hub. The scheduler counts these numbers for its metrics anyway, so publishing
// causes no extra counting and never delays a pod.
type Publisher struct {
	// Kubeconfig is the kubeconfig file of the hub. Cluster is the name of this cluster on the hub.
	Kubeconfig, Cluster string
	// Counted returns the latest counts of fitting sets, or nil before the first count.
	Counted func() *metrics.Fragmentation
	// Interval is the time between two counts.
	Interval time.Duration
	Observe  func(metrics.Publication)
	Clock    clock.PassiveClock

	// written maps names of scores to the numbers that were last stored on the hub. These numbers expire at validUntil.
	written    map[string]int
	validUntil time.Time
	// trying is a semaphore, so that only one attempt to publish runs at a time.
	trying chan struct{}
}

// Run publishes until the context ends. The last published numbers then expire.
func (p *Publisher) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := p.Publish(ctx); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			p.Observe(metrics.PublicationFailed)
			klog.FromContext(ctx).Error(printable.Error(err, maxLogged), "Could not publish the number of sets of devices to the hub; the published values expire", "cluster", p.Cluster, "validUntil", p.validUntil)
		}
	}, look)
}

// Publish writes the latest counts if they differ from the numbers on the hub, or if the numbers on the hub expire within half
// their validity.
func (p *Publisher) Publish(ctx context.Context) error {
	last := p.Counted()
	if last == nil {
		return nil
	}
	validity := intervals * max(p.Interval, observe.FragmentationRest*last.Took)
	validUntil := last.At.Add(validity)
	next := numbersOf(last.Report)
	if maps.Equal(next, p.written) && (p.validUntil.Sub(p.Clock.Now()) > validity/2 || !validUntil.After(p.validUntil)) {
		return nil
	}
	if err := p.try(ctx, func() error { return p.write(ctx, next, validUntil) }); err != nil {
		return err
	}
	p.written, p.validUntil = next, validUntil
	p.Observe(metrics.PublicationWritten)
	return nil
}

// try calls write and waits for its result. If the context ends first, try returns, even if a credential plugin of the
// kubeconfig blocks write. The next call of try then waits until that write has ended.
func (p *Publisher) try(ctx context.Context, write func() error) error {
	if p.trying == nil {
		p.trying = make(chan struct{}, 1)
	}
	select {
	case p.trying <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		err := write()
		<-p.trying
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bounded is a transport that limits the size of responses.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
	}
	return response, err
}

func (p *Publisher) write(ctx context.Context, numbers map[string]int, validUntil time.Time) error {
	// Read the kubeconfig for each write, because credentials are renewed. Writes are rare.
	hub, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return err
	}
	hub.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	hub.GroupVersion, hub.APIPath = &scoresVersion, "/apis"
	hub.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(hub)
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
	score.SetGroupVersionKind(scoresVersion.WithKind("AddOnPlacementScore"))
	score.SetNamespace(p.Cluster)
	score.SetName(setscores.Name)
	score.SetAnnotations(map[string]string{setscores.QuantitiesAnnotation: string(annotation)})
	if err := p.apply(ctx, client, score); err != nil {
		return err
	}
	score.SetAnnotations(nil)
	score.Object["status"] = map[string]any{"validUntil": validUntil.UTC().Format(time.RFC3339), "scores": scores}
	return p.apply(ctx, client, score, "status")
}

// apply applies the score or, with the subresource status, the status of the score. It does not decode the object in the
// response.
func (p *Publisher) apply(ctx context.Context, client rest.Interface, score *unstructured.Unstructured, subresource ...string) error {
	body, err := score.MarshalJSON()
	if err != nil {
		return err
	}
	options := &metav1.PatchOptions{FieldManager: wellknown.FieldManagerScheduler, Force: ptr.To(true)}
	return client.Patch(types.ApplyYAMLPatchType).Namespace(p.Cluster).Resource("addonplacementscores").Name(setscores.Name).
		SubResource(subresource...).VersionedParams(options, metav1.ParameterCodec).Body(body).Do(ctx).Error()
}

// numbersOf maps names of scores to numbers of fitting sets, without shapes whose names are no valid scores. A report contains
// only the most requested shapes.
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
