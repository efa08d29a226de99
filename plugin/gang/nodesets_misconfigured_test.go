// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/plugintest"
)

type clientOnly struct {
	fwk.Handle
	client kubernetes.Interface
}

func (h clientOnly) ClientSet() kubernetes.Interface { return h.client }

// TestConditionWritesAreBounded checks that at most maxConditionWrites writes are in progress while the API server does not
// respond.
func TestConditionWritesAreBounded(t *testing.T) {
	client := fake.NewClientset()
	answer, answered := make(chan struct{}), make(chan struct{}, maxConditionWrites+1)
	client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-answer
		answered <- struct{}{}
		return true, &schedulingapi.PodGroup{}, nil
	})
	pl := &NodeSets{handle: clientOnly{client: client}, writes: make(chan struct{}, maxConditionWrites)}
	write := func(i int) bool {
		group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("group-", i)}}
		return pl.write(t.Context(), group, metav1.ConditionTrue, wellknown.ReasonInvalidExpression, "wrong")
	}
	for i := range maxConditionWrites {
		require.True(t, write(i))
	}
	require.False(t, write(maxConditionWrites))
	close(answer)
	for range maxConditionWrites {
		<-answered
	}
	require.Eventually(t, func() bool { return write(maxConditionWrites) }, time.Minute, time.Millisecond)
	<-answered
}

// TestConditionThatCanNotBeWrittenIsLogged makes the API server reject the write.
func TestConditionThatCanNotBeWrittenIsLogged(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schedulingapi.Resource("podgroups"), "group", nil)
	})
	pl := &NodeSets{handle: clientOnly{client: client}, writes: make(chan struct{}, 1)}
	ctx, log := plugintest.WithLog(t.Context())
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "group"}}
	require.True(t, pl.write(ctx, group, metav1.ConditionTrue, wellknown.ReasonInvalidExpression, "wrong"))
	pl.writes <- struct{}{} // This blocks until the write has ended.
	plugintest.RequireLogged(t, log, "The condition of a PodGroup could not be written")
}
