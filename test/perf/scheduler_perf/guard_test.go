// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_perf

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/admission/guard/server"
)

// guardedVariants runs each workload twice, with and without the webhook against double allocation.
var guardedVariants = []variant{{name: "unguarded"}, {name: "guarded"}}

// guardHook is the name of the webhook that judges allocations.
const guardHook = "allocations.celset.dev"

// startGuard runs the webhook against double allocation until the workload ends. Like the API server and the scheduler, it runs
// in this process.
func startGuard(tCtx ktesting.TContext) error {
	config := rest.CopyConfig(tCtx.RESTConfig())
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	registry := compbase.NewKubeRegistry()
	measured, err := server.NewMetrics(registry.Registerer())
	if err != nil {
		return err
	}
	election := server.DefaultElection()
	election.RetryPeriod = 100 * time.Millisecond
	s, err := server.New(server.Options{Client: client, Namespace: "default", Election: election, Grace: time.Millisecond, Metrics: measured})
	if err != nil {
		return err
	}
	ctx := tCtx.WithCancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	web := httptest.NewTLSServer(s)
	tCtx.Cleanup(func() {
		ctx.Cancel("the workload is done")
		require.NoError(tCtx, <-ended)
		web.Close()
		judged, err := valueOf(registry, "celset_guard_judgement_duration_seconds")
		require.NoError(tCtx, err)
		require.Positive(tCtx, judged)
	})
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	url := web.URL
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(tCtx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: guardHook},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: guardHook, ClientConfig: admissionv1.WebhookClientConfig{URL: &url, CABundle: bundle},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{resourceapi.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"resourceclaims/status"}},
			}},
			FailurePolicy: ptr.To(admissionv1.Fail), SideEffects: ptr.To(admissionv1.SideEffectClassNoneOnDryRun), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		active, err := valueOf(registry, "celset_guard_active")
		if err != nil || active == 1 {
			return err
		}
	}
	return errors.New("the guard is not active after a minute")
}

// valueOf returns the sum of a metric's samples. For a histogram it adds up the counts.
func valueOf(registry compbase.KubeRegistry, name string) (sum float64, err error) {
	families, err := registry.Gather()
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			sum += metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return sum, err
}

// guardSome starts the webhook if the workload is the guarded variant.
func guardSome(tCtx ktesting.TContext) error {
	if !strings.Contains(tCtx.Name(), "/config=guarded/") {
		return nil
	}
	return startGuard(tCtx)
}

// BenchmarkPerfSchedulingGuard runs the same pods with and without the guard against double allocation.
func BenchmarkPerfSchedulingGuard(b *testing.B) {
	benchmark(b, variantConfig(b, "Guard", guardedVariants), "celset_guard", measured(guardSome))
}

// TestGuard runs the workloads with the label "short", with and without the webhook, and checks that the API server calls the
// webhook.
func TestGuard(t *testing.T) {
	require.Equal(t, 2*2, check(t, variantConfig(t, "Guard", guardedVariants), guardSome, nil))
}
