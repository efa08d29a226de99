// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/clusterstate"
)

const (
	// maxMore is the maximum number of further subjects that are counted.
	maxMore = 256
	// moreTime is the time limit for counting further subjects.
	moreTime = time.Second
)

// more counts further subjects like this one. It places copies one after another, on one node after the other, as the scheduler
// would, until no copy fits. The first copy is the subject itself. It returns nil for a pod of a group, because the pod runs only with
// its group. It also returns nil for a pod with conditions that package fit does not check, such as anti-affinity, because these
// may prevent copies.
func (q *subjectQuestion) more(ctx context.Context, report *fit.Report) *More {
	if pod := q.subject.Pod; pod != nil && (q.state.GroupOf(pod) != nil || q.state.RunningUnknown != "" || len(fit.Unchecked(pod)) > 0) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, moreTime)
	defer cancel()
	options := q.fitOptions(ctx, q.subject.Pod)
	options.Why, options.OfGroup = false, true
	var placed []*resourceapi.ResourceClaim
	count := 0
	for _, verdict := range report.Nodes {
		if !verdict.Fits {
			continue
		}
		node := q.state.Node(verdict.Node)
		part := onNode(q.state, node)
		part.Claims = append(part.Claims, placed...)
		options.Nodes = []string{node.Name}
		for {
			if count > maxMore || ctx.Err() != nil {
				return &More{Count: max(count-1, 0), AtLeast: true}
			}
			state := clusterstate.New(part)
			copied, err := fit.Run(ctx, state, q.subject, options)
			if err != nil || copied.Error != "" || copied.Incomplete != "" {
				return &More{Count: max(count-1, 0), AtLeast: true}
			}
			if !copied.Fits() {
				break
			}
			count++
			claims := allocated(state.PendingOn(q.subject, node), copied.Nodes[0].Allocations(), fmt.Sprintf("-copy-%d", count))
			part.Claims, placed = append(part.Claims, claims...), append(placed, claims...)
			if pod := q.subject.Pod; pod != nil {
				another := pod.DeepCopy()
				another.Name, another.Spec.NodeName = fmt.Sprintf("%s-copy-%d", pod.Name, count), node.Name
				part.Running = append(part.Running, another)
			} else if len(claims) == 0 {
				return nil
			}
		}
	}
	return &More{Count: max(count-1, 0)}
}
