// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/celset/celset/admission"
	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/internal/testing/cases"
)

// reader is an API server, or a cache of it, with these objects.
type reader struct {
	client.Reader
	t       testing.TB
	classes fakeClasses
	claims  map[string]*resourceapi.ResourceClaim
	reads   int
	// list fills in the objects of a list. If it is nil, List fails.
	list func(client.ObjectList)
	// namespaces are the namespaces whose objects were listed.
	namespaces []string
}

func (r *reader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	deadline, limited := ctx.Deadline()
	require.True(r.t, limited && time.Until(deadline) <= listTimeout, "no answer waits for long")
	require.Contains(r.t, options, client.Limit(maxListed))
	for _, option := range options {
		if namespace, ok := option.(client.InNamespace); ok {
			r.namespaces = append(r.namespaces, string(namespace))
		}
	}
	if r.list == nil {
		return errors.New("forbidden")
	}
	r.list(into)
	return nil
}

func (r *reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	_, limited := ctx.Deadline()
	require.True(r.t, limited, "no answer waits for ever")
	r.reads++
	switch into := into.(type) {
	case *resourceapi.DeviceClass:
		class, err := r.classes.Get(key.Name)
		if err == nil {
			class.DeepCopyInto(into)
		}
		return err
	case *resourceapi.ResourceClaim:
		require.Equal(r.t, "default", key.Namespace)
		if claim := r.claims[key.Name]; claim != nil {
			claim.DeepCopyInto(into)
			return nil
		}
	}
	return fmt.Errorf("%s is unknown", key)
}

// newServer registers the webhooks on a server, as a manager does.
func newServer(t testing.TB, cached, live *reader) http.Handler {
	t.Helper()
	log.SetLogger(logr.Discard())
	server := webhook.NewServer(webhook.Options{})
	require.NoError(t, Register(server, newChecker(t), Readers{Cached: cached, Live: live}))
	return server.WebhookMux()
}

// ask sends a review and returns the answer.
func ask(t require.TestingT, server http.Handler, path string, body []byte) *admissionv1.AdmissionResponse {
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	require.Equal(t, http.StatusOK, recorder.Code)
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &answer))
	require.NotNil(t, answer.Response)
	require.NotContains(t, recorder.Body.String(), "[recovered]", "it panicked")
	return answer.Response
}

func reviewOf(t require.TestingT, object, old runtime.Object) []byte {
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Namespace: "default", Object: rawOf(t, object)},
	}
	if old != nil {
		review.Request.Operation, review.Request.OldObject = admissionv1.Update, rawOf(t, old)
	}
	body, err := json.Marshal(review)
	require.NoError(t, err)
	return body
}

func rawOf(t require.TestingT, object runtime.Object) runtime.RawExtension {
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		object.TypeMeta = metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"}
	case *resourceapi.ResourceClaimTemplate:
		object.TypeMeta = metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimTemplate"}
	case *resourceapi.DeviceClass:
		object.TypeMeta = metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass"}
	case *corev1.Pod:
		object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	}
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	return runtime.RawExtension{Raw: raw}
}

func TestAnswers(t *testing.T) {
	empty := &reader{t: t}
	server := newServer(t, empty, empty)
	// With one device and a preference in the claim itself, classes are not read.
	wrong, right := claimOf(t, asking(1, defined("a", "1"), preferred("p", "1"))), claimOf(t, asking(1, defined("a", "devices.size() > 0"), preferred("p", "1")))
	answer := ask(t, server, ClaimPath, reviewOf(t, wrong, nil))
	require.False(t, answer.Allowed)
	require.EqualValues(t, http.StatusUnprocessableEntity, answer.Result.Code)
	require.Equal(t, `ResourceClaim.resource.k8s.io "four" is invalid: spec.devices.config[0].opaque.parameters.expression: Invalid value: ERROR: <input>:1:1: the expression must return bool, but returns int`+"\n | 1\n | ^", answer.Result.Message)
	require.True(t, ask(t, server, ClaimPath, reviewOf(t, right, nil)).Allowed)

	labelled := wrong.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	labelled.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "p"}}
	require.True(t, ask(t, server, ClaimPath, reviewOf(t, labelled, wrong)).Allowed, "the specification is as it was")
	require.False(t, ask(t, server, ClaimPath, reviewOf(t, wrong, right)).Allowed)
	deleted := wrong.DeepCopy()
	deleted.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
	require.True(t, ask(t, server, ClaimPath, reviewOf(t, deleted, right)).Allowed)

	require.False(t, ask(t, server, TemplatePath, reviewOf(t, templateOf(wrong), nil)).Allowed)
	require.True(t, ask(t, server, TemplatePath, reviewOf(t, templateOf(right), nil)).Allowed)
	config := "config: [" + defined("a", "1") + "]"
	require.False(t, ask(t, server, ClassPath, reviewOf(t, classOf(t, "mla", config), nil)).Allowed)
	require.False(t, ask(t, server, ClassPath, reviewOf(t, classOf(t, "mla", config), classOf(t, "mla", "{}"))).Allowed)
	moved := "config: [" + defined("b", "devices.size() > 0") + "," + defined("a", "1") + "]"
	answer = ask(t, server, ClassPath, reviewOf(t, classOf(t, "mla", moved), classOf(t, "mla", config)))
	require.True(t, answer.Allowed)
	require.Len(t, answer.Warnings, 1)
	require.Zero(t, empty.reads, "all is in the objects")
}

// TestWhoIsAskedForClasses tests that classes are read from the cache first, and from the API server before a rejection.
func TestWhoIsAskedForClasses(t *testing.T) {
	good := fakeClasses{"mla": classOf(t, "mla", "config: ["+defined("a", "devices.size() > 0")+"]")}
	bad := fakeClasses{"mla": classOf(t, "mla", "config: ["+defined("a", "1")+"]")}
	for name, test := range map[string]struct {
		cached, live fakeClasses
		allowed      bool
		warnings     int
		reads        int // of the API server
	}{
		"cached":       {cached: good, live: bad, allowed: true},
		"mended":       {cached: bad, live: good, allowed: true, reads: 1},
		"just created": {cached: fakeClasses{}, live: good, allowed: true, reads: 1},
		"wrong":        {cached: bad, live: bad, reads: 1},
		"missing":      {cached: fakeClasses{}, live: fakeClasses{}, allowed: true, warnings: 1, reads: 1},
		"unavailable":  {cached: bad, live: fakeClasses{"mla": nil}, allowed: true, warnings: 1, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := &reader{t: t, classes: test.cached}, &reader{t: t, classes: test.live}
			answer := ask(t, newServer(t, cached, live), ClaimPath, reviewOf(t, claimOf(t, asking(4)), nil))
			require.Equal(t, test.allowed, answer.Allowed)
			require.Len(t, answer.Warnings, test.warnings)
			require.Equal(t, 1, cached.reads)
			require.Equal(t, test.reads, live.reads)
		})
	}
}

// TestRemovedConstraints tests that a class may drop a constraint, with a warning that names the users of the constraint.
func TestRemovedConstraints(t *testing.T) {
	more := ""
	live := &reader{t: t, list: func(into client.ObjectList) {
		switch into := into.(type) {
		case *resourceapi.ResourceClaimTemplateList:
			into.Continue = more
			into.Items = append(into.Items, *templateOf(claimOf(t, asking(4))), *templateOf(claimOf(t, asking(4, defined("a", "devices.size() > 0")))), *templateOf(claimOf(t, "{}")))
		case *resourceapi.ResourceClaimList:
			for range 6 {
				into.Items = append(into.Items, *claimOf(t, asking(4)))
			}
			allocated := claimOf(t, asking(4))
			allocated.Status.Allocation = &resourceapi.AllocationResult{}
			into.Items = append(into.Items, *allocated)
		}
	}}
	server := newServer(t, &reader{t: t}, live)
	old := classOf(t, "mla", "config: ["+defined("a", "devices.size() > 0")+", "+defined("b", "devices.size() > 0")+"]")
	update := func(server http.Handler, config string) []string {
		answer := ask(t, server, ClassPath, reviewOf(t, classOf(t, "mla", "config: ["+config+"]"), old))
		require.True(t, answer.Allowed)
		return answer.Warnings
	}
	text := "spec.config: 7 objects refer to constraint a, which this update removes, and their pods will wait: ResourceClaimTemplate default/four, " +
		strings.Repeat("ResourceClaim default/four, ", 3) + "ResourceClaim default/four and 2 more; define the constraint again, or change these objects"
	require.Equal(t, []string{text}, update(server, defined("renamed", "devices.size() > 0")+", "+defined("b", "devices.size() > 0")))
	require.Empty(t, update(server, defined("a", "devices.size() > 0")), "what nothing refers to")
	more = "more"
	require.Equal(t, []string{strings.Replace(text, "7", "at least 7", 1)}, update(server, ""))
	require.Empty(t, update(newServer(t, &reader{t: t}, &reader{t: t}), ""), "what can't be listed")
}

func TestPodsAreAllowed(t *testing.T) {
	live := &reader{t: t, claims: map[string]*resourceapi.ResourceClaim{"constrained": claimOf(t, asking(4))}}
	server := newServer(t, &reader{t: t}, live)
	for name, warnings := range map[string]int{"constrained": 1, "unknown": 0} {
		answer := ask(t, server, PodPath, reviewOf(t, podOf("default-scheduler", corev1.PodResourceClaim{Name: "r", ResourceClaimName: &name}), nil))
		require.True(t, answer.Allowed)
		require.Len(t, answer.Warnings, warnings)
		require.True(t, ask(t, server, PodPath, reviewOf(t, podOf("celset-scheduler", corev1.PodResourceClaim{Name: "r", ResourceClaimName: &name}), nil)).Allowed)
	}
	require.Equal(t, 2, live.reads)
}

// TestPodsTakeTurns tests that a pod is allowed without any reads if its turn does not come.
func TestPodsTakeTurns(t *testing.T) {
	live := &reader{t: t, claims: map[string]*resourceapi.ResourceClaim{"constrained": claimOf(t, asking(4))}}
	v := podValidator{newChecker(t), live, fairness.NewTurns(1, 1)}
	end, err := v.turns.Take(t.Context(), "default")
	require.NoError(t, err)
	object := podOf("default-scheduler", corev1.PodResourceClaim{Name: "r", ResourceClaimName: ptr.To("constrained")})
	object.Namespace = "default"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	warnings, err := v.ValidateCreate(ended, object)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Zero(t, live.reads)
	end()
	warnings, err = v.ValidateCreate(t.Context(), object)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
}

func TestAnswersAreBounded(t *testing.T) {
	empty := &reader{t: t}
	server := newServer(t, empty, empty)
	var config []string
	for range 100 {
		config = append(config, defined("4", "devices.size() > 0"))
	}
	answer := ask(t, server, ClaimPath, reviewOf(t, claimOf(t, asking(4, config...)), nil))
	require.False(t, answer.Allowed)
	require.Len(t, answer.Result.Details.Causes, maxErrors+1)
	require.Contains(t, answer.Result.Message, "there are 80 more mistakes")

	body := append(reviewOf(t, claimOf(t, "{}"), nil), bytes.Repeat([]byte(" "), 8<<20)...)
	answer = ask(t, server, ClaimPath, body)
	require.False(t, answer.Allowed)
	require.EqualValues(t, http.StatusRequestEntityTooLarge, answer.Result.Code)
}

// TestMalformedReviews tests that every request gets an answer, and that malformed objects are rejected.
func TestMalformedReviews(t *testing.T) {
	empty := &reader{t: t}
	server := newServer(t, empty, empty)
	paths := []string{ClaimPath, TemplatePath, ClassPath, PodPath, GroupPath, AttributesPath}
	for _, body := range []string{"", "{}", "[]", "null", "3", "{", `{"kind":"AdmissionReview"}`, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`} {
		for _, path := range paths {
			require.False(t, ask(t, server, path, []byte(body)).Allowed, "%s: %s", path, body)
		}
	}
	cases.Check(t, func(t *rapid.T) {
		claim := claimOf(t, rapid.SampledFrom([]string{"{}", asking(4), asking(33), asking(4, defined("a", "devices[0]"), preferred("b", "1"))}).Draw(t, "claim"))
		body := string(reviewOf(t, claim, templateOf(claim)))
		ask(t, server, rapid.SampledFrom(paths).Draw(t, "path"), []byte(damaged(t, body)))
		ask(t, server, rapid.SampledFrom(paths).Draw(t, "path"), []byte(strings.Replace(body, `"UPDATE"`, `"CREATE"`, 1)))
	})
}

// TestObjectsTakeTurns tests that objects of one namespace are checked one after the other, beside objects of other namespaces.
// If too many objects of one namespace wait, further ones are rejected.
func TestObjectsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, goOn := make(chan string, 10), make(chan struct{})
		v := validator[*resourceapi.ResourceClaim]{
			kind: resourceKind("ResourceClaim"), turns: fairness.NewTurns(2, 1),
			check: func(ctx context.Context, _ *resourceapi.ResourceClaim) (admission.Verdict, error) {
				begun <- fairness.TenantIn(ctx)
				<-goOn
				return admission.Verdict{}, nil
			},
		}
		create := func(ctx context.Context, namespace string) error {
			ctx = ctrladmission.NewContextWithRequest(ctx, ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: namespace, UserInfo: authenticationv1.UserInfo{Username: "u"},
			}})
			_, err := v.ValidateCreate(ctx, &resourceapi.ResourceClaim{})
			return err
		}
		var all errgroup.Group
		all.Go(func() error { return create(t.Context(), "a") })
		require.Equal(t, "namespace a", <-begun)
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() { second <- create(ctx, "a") }()
		synctest.Wait()
		err := create(ctx, "a")
		require.True(t, apierrors.IsTooManyRequests(err))
		require.EqualError(t, err, "64 objects of namespace a are waiting for the webhook; try again")
		all.Go(func() error { return create(t.Context(), "") })
		require.Equal(t, "user u", <-begun)
		cancel()
		require.ErrorIs(t, <-second, context.Canceled)
		close(goOn)
		require.NoError(t, all.Wait())
	})
}
