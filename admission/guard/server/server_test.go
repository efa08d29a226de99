// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/wellknown"
)

// quick is an election with short waits for tests. Its lease is so long that it can't expire on a busy machine.
var quick = Election{LeaseDuration: 2 * patience, RenewDeadline: patience, RetryPeriod: 10 * time.Millisecond}

const patience = 2 * time.Minute

const system = "celset-system"

func aClaim(name, version string, devices ...string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version},
	}
	if len(devices) > 0 {
		claim.Status.Allocation = &resourceapi.AllocationResult{}
	}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: "gpu.example.com", Pool: "pool", Device: device})
	}
	return claim
}

func encoded(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	content, err := json.Marshal(object)
	require.NoError(t, err)
	return runtime.RawExtension{Raw: content}
}

// ask sends a request to a server as the API server does.
func ask(t *testing.T, s http.Handler, former, claim *resourceapi.ResourceClaim, edit ...func(*admissionv1.AdmissionRequest)) *admissionv1.AdmissionResponse {
	t.Helper()
	request := &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Update, SubResource: "status", Namespace: claim.Namespace, Name: claim.Name,
		Object: encoded(t, claim), OldObject: encoded(t, former),
	}
	for _, one := range edit {
		one(request)
	}
	review := encoded(t, &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, bytes.NewReader(review.Raw))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	return answer.Response
}

// newServer returns a server for a cluster. A claim of the cluster has device 0.
func newServer(t *testing.T, edit ...func(*Options)) (*Server, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(aClaim("owner", "1", "0"), aClaim("new", "2"))
	options := Options{Client: client, Namespace: system, Election: quick, Grace: 10 * time.Millisecond}
	for _, one := range edit {
		one(&options)
	}
	s, err := New(options)
	require.NoError(t, err)
	return s, client
}

// run runs a server until stop is called or the test ends.
func run(t *testing.T, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}

func isActive(s *Server) func() bool {
	return func() bool { t := s.term.Load(); return t != nil && t.lease.isValid() }
}

func TestAnswers(t *testing.T) {
	// The clock stands still, so that the grace of admitted writes does not end on a slow machine.
	began := time.Now()
	s, _ := newServer(t, func(o *Options) { o.Now = func() time.Time { return began } })
	answer := ask(t, s, aClaim("new", "2"), aClaim("new", "2", "1"))
	require.False(t, answer.Allowed)
	require.Equal(t, int32(http.StatusServiceUnavailable), answer.Result.Code)
	require.Equal(t, "this replica of the allocation guard is not the leader, or still waits until earlier allocations are stored; try again", answer.Result.Message)
	require.False(t, s.NeedLeaderElection())

	run(t, s)
	require.Eventually(t, isActive(s), patience, time.Millisecond)
	answer = ask(t, s, aClaim("new", "2"), aClaim("new", "2", "0"))
	require.Equal(t, &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: "device gpu.example.com/pool/0 is in use: claim default/owner",
	}, answer.Result)
	dry := func(r *admissionv1.AdmissionRequest) { r.DryRun = ptr.To(true) }
	require.True(t, ask(t, s, aClaim("dry", "2"), aClaim("dry", "2", "1"), dry).Allowed)
	require.True(t, ask(t, s, aClaim("new", "2"), aClaim("new", "2", "1")).Allowed)
	require.Equal(t, int32(http.StatusForbidden), ask(t, s, aClaim("other", "2"), aClaim("other", "2", "1")).Result.Code, "it was just admitted")
	require.Equal(t, int32(http.StatusBadRequest), ask(t, s, aClaim("other", "none"), aClaim("other", "2", "2")).Result.Code)

	for name, answer := range map[string]*admissionv1.AdmissionResponse{
		"deallocation": ask(t, s, aClaim("owner", "1", "0"), aClaim("owner", "1")),
		"reservation":  ask(t, s, aClaim("a", "1", "0"), aClaim("a", "1", "0")),
		"no status":    ask(t, s, aClaim("a", "1"), aClaim("a", "1", "0"), func(r *admissionv1.AdmissionRequest) { r.SubResource = "" }),
		"creation":     ask(t, s, aClaim("a", "1"), aClaim("a", "1", "0"), func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Create }),
	} {
		require.True(t, answer.Allowed, name)
	}
	broken := ask(t, s, aClaim("a", "1"), aClaim("a", "1", "0"), func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = []byte(`{"kind": 1}`) })
	require.Equal(t, int32(http.StatusBadRequest), broken.Result.Code)
}

// TestFollows tests that the server sees claims that are stored, changed and deleted after its start.
func TestFollows(t *testing.T) {
	s, client := newServer(t)
	run(t, s)
	require.Eventually(t, isActive(s), patience, time.Millisecond)
	claims := client.ResourceV1().ResourceClaims("default")
	_, err := claims.Create(t.Context(), aClaim("second", "5", "1"), metav1.CreateOptions{})
	require.NoError(t, err)
	g := s.term.Load().guard
	require.Eventually(t, func() bool { return g.Counts().Claims == 2 }, patience, time.Millisecond)
	_, err = claims.Update(t.Context(), aClaim("second", "6"), metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return g.Counts().Claims == 1 }, patience, time.Millisecond)
	require.NoError(t, claims.Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return g.Counts().Claims == 0 }, patience, time.Millisecond)
	require.ErrorContains(t, newStore(func(string) {}, func(string) {}, func([]string, string) {}).Add(1), "got a int from a watch")
	require.Error(t, newStore(func(string) {}, func(string) {}, func([]string, string) {}).Replace([]any{1}, "1"))
}

// TestListsFromEtcd tests that the first lists are read from etcd, and that the server judges only after all lists.
func TestListsFromEtcd(t *testing.T) {
	s, client := newServer(t)
	var versions []string
	client.PrependReactor("list", "resourceclaims", func(action k8stesting.Action) (bool, runtime.Object, error) {
		versions = append(versions, action.(k8stesting.ListActionImpl).ListOptions.ResourceVersion)
		return false, nil, nil
	})
	run(t, s)
	require.Eventually(t, isActive(s), patience, time.Millisecond)
	require.Equal(t, []string{""}, versions)
}

// TestHandsOver tests that a stopping server releases its lease only after all admitted writes are settled.
func TestHandsOver(t *testing.T) {
	for name, settled := range map[string]bool{"settled": true, "not settled": false} {
		t.Run(name, func(t *testing.T) {
			// Grace is longer than the test, so the test fails if the server waits. It need not wait, because the lease was
			// just released.
			s, client := newServer(t, func(o *Options) { o.Grace = time.Hour })
			_, err := client.CoordinationV1().Leases(system).Create(t.Context(), &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: wellknown.LeaseGuard},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(string), RenewTime: ptr.To(metav1.NowMicro())},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
			stop := run(t, s)
			require.Eventually(t, isActive(s), patience, time.Millisecond)
			require.True(t, ask(t, s, aClaim("new", "2"), aClaim("new", "2", "1")).Allowed)
			if settled {
				_, err := client.ResourceV1().ResourceClaims("default").Update(t.Context(), aClaim("new", "3", "1"), metav1.UpdateOptions{})
				require.NoError(t, err)
				require.Eventually(t, func() bool { return s.term.Load().guard.Admitted() == 0 }, patience, time.Millisecond)
			}
			stop()
			require.Equal(t, int32(http.StatusServiceUnavailable), ask(t, s, aClaim("third", "2"), aClaim("third", "2", "2")).Result.Code)
			lease, err := client.CoordinationV1().Leases(system).Get(t.Context(), wellknown.LeaseGuard, metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, settled, *lease.Spec.HolderIdentity == "")
		})
	}
}

// TestLabelsItsPod tests that only the pod of the leader has the label.
func TestLabelsItsPod(t *testing.T) {
	pod := func(name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name, Labels: labels}}
	}
	registry := metrics.NewKubeRegistry()
	measured, err := NewMetrics(registry.Registerer())
	require.NoError(t, err)
	first, client := newServer(t, func(o *Options) { o.Pod, o.Metrics = "first", measured })
	for _, one := range []*corev1.Pod{pod("first", nil), pod("second", nil), pod("former", map[string]string{"a": "b", wellknown.LabelGuard: wellknown.GuardActive})} {
		_, err := client.CoreV1().Pods(system).Create(t.Context(), one, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	requireLabelled := func(name string) {
		require.Eventually(t, func() bool {
			list, err := client.CoreV1().Pods(system).List(t.Context(), metav1.ListOptions{LabelSelector: wellknown.LabelGuard + "=" + wellknown.GuardActive})
			return err == nil && len(list.Items) == 1 && list.Items[0].Name == name
		}, patience, time.Millisecond)
	}
	stop := run(t, first)
	requireLabelled("first")
	former, err := client.CoreV1().Pods(system).Get(t.Context(), "former", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b"}, former.Labels)
	_, err = client.CoreV1().Pods(system).Patch(t.Context(), "first", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	requireLabelled("first")
	require.Eventually(t, isActive(first), patience, time.Millisecond)
	require.Eventually(t, func() bool { return gaugeOf(t, registry, "celset_guard_active") == 1 }, patience, time.Millisecond)

	second, err := New(Options{Client: client, Namespace: system, Pod: "second", Election: quick, Grace: time.Hour})
	require.NoError(t, err)
	run(t, second)
	answer := ask(t, second, aClaim("new", "2"), aClaim("new", "2", "1"))
	require.Equal(t, int32(http.StatusServiceUnavailable), answer.Result.Code)
	require.Contains(t, answer.Result.Message, "is not the leader")
	stop()
	requireLabelled("second")
	require.InDelta(t, 0, gaugeOf(t, registry, "celset_guard_active"), 0)
}

func TestMistakes(t *testing.T) {
	_, err := New(Options{})
	require.ErrorContains(t, err, "there is no client")
	_, err = New(Options{Client: fake.NewClientset()})
	require.ErrorContains(t, err, "must be longer than the time for a renewal")
	require.NoError(t, DefaultElection().Validate())

	registry := metrics.NewKubeRegistry()
	_, err = NewMetrics(registry.Registerer())
	require.NoError(t, err)
	_, err = NewMetrics(registry.Registerer())
	require.ErrorContains(t, err, "register metric celset_guard_")
}
