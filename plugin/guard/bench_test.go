// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// activeQueue is a scheduling queue with a fixed list of active pods.
type activeQueue []*v1.Pod

func (q activeQueue) PodsInActiveQ() []*v1.Pod { return append([]*v1.Pod(nil), q...) }

// BenchmarkPod measures the guard's time for one pod with a claim, from Gate to the binding. Other pods wait in the scheduling
// queue and in the lines of other namespaces.
func BenchmarkPod(b *testing.B) {
	for _, n := range []int{0, 10_000} {
		b.Run(fmt.Sprint("beside=", n), func(b *testing.B) {
			g := New(clock.RealClock{})
			g.Configure(Limits{SharePercent: 20, ShareBurst: 250 * time.Millisecond, BackOffInitial: time.Second, BackOffMax: 5 * time.Minute})
			var plain activeQueue
			activate := func(*v1.Pod) {}
			for i := range n {
				plain = append(plain, pod(fmt.Sprint("plain-", i%100), fmt.Sprint(i)))
			}
			g.Watch(plain)
			for i := range n {
				p := pod(fmt.Sprint("line-", i%100), fmt.Sprint(i))
				g.Gate(Request{Pod: p, Activate: activate})
			}
			go g.Run(b.Context())
			b.ResetTimer()
			for i := range b.N {
				p := pod("a", fmt.Sprint(i))
				r := Request{Pod: p, Timeout: time.Second, Activate: activate}
				g.Gate(r)
				g.CycleBegan("a")
				a, _ := g.Admit(r)
				a.Progress()
				a.Succeeded()
				g.CycleEnded()
				g.Forget(p)
			}
		})
	}
}
