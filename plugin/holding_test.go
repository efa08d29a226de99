// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/plugin/hold"
)

// TestNoUseToWait: a pod waits for what is held for it as long as that will be given back.
func TestNoUseToWait(t *testing.T) {
	ending := &metav1.Time{Time: time.Unix(1, 0)}
	foreign := resourceapi.ResourceClaimConsumerReference{APIGroup: "example.com", Resource: "jobs", Name: "somebody", UID: "somebody"}
	tests := map[string]struct {
		change  func(user *v1.Pod, claim *resourceapi.ResourceClaim)
		victims []types.UID
		plugin  string
		// want is what is said when it is asked for the first time, and again.
		want, again string
	}{
		"somebody has it": {want: "pod default/low has some of them", again: "pod default/low has some of them"},
		"who has it ends": {change: func(user *v1.Pod, _ *resourceapi.ResourceClaim) {
			user.DeletionTimestamp, user.Finalizers = ending, []string{"example.com/slow"}
		}},
		"who has it is another pod by now":       {change: func(user *v1.Pod, _ *resourceapi.ResourceClaim) { user.UID = "again" }},
		"who has it was evicted just now":        {victims: []types.UID{"low"}},
		"who has it was not evicted, but others": {victims: []types.UID{"other"}, want: "pod default/low has some of them", again: "pod default/low has some of them"},
		"somebody has it who is no pod": {change: func(_ *v1.Pod, claim *resourceapi.ResourceClaim) {
			claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{foreign}
		}, want: "jobs default/somebody has some of them", again: "jobs default/somebody has some of them"},
		"nobody has it": {change: func(_ *v1.Pod, claim *resourceapi.ResourceClaim) { claim.Status = resourceapi.ResourceClaimStatus{} },
			again: "they are free, and the node refuses it: refused"},
		"the node refuses it": {plugin: "NodeResourcesFit", want: "the node refuses it for another reason: refused", again: "the node refuses it for another reason: refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := &evictable{node: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{v1.LabelHostname: nodeName}}}}
			e.add(rand.New(rand.NewPCG(1, 1)), "low", []int{1})
			job := evictablePod("job", 1000, "1", "job")
			if test.change != nil {
				test.change(e.pods[0], e.claims[0])
			}
			ctx, h := newHandle(t, class(), e.node, slice(0, 1), e.pods[0], e.claims[0])
			shared := newShared()
			shared.preempts = true
			made, err := newPlugin(ctx, nil, h, features(), true, newMetrics(t), shared)
			require.NoError(t, err)
			objects := []runtime.Object{class(), e.pods[0], e.claims[0]}
			h.start(ctx, t, objects...)
			held := hold.Hold{Pod: job, Node: nodeName, Timeout: time.Hour, Victims: test.victims, Devices: []resourceapi.DeviceRequestAllocationResult{
				{Driver: driver, Pool: nodeName, Device: deviceName(1)},
			}}
			made.preempter.holds.Keep(held)
			refused := fwk.NewStatus(fwk.Unschedulable, "refused").WithPlugin(Name)
			if test.plugin != "" {
				refused = refused.WithPlugin(test.plugin)
			}
			require.Equal(t, test.want, made.preempter.noUseToWait(held, refused))
			require.Equal(t, test.again, made.preempter.noUseToWait(held, refused))
		})
	}
}
