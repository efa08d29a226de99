// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/celset/celset/internal/testing/ledger"
)

// forgedLabel is on claims that a test has given devices that others have. The ledger does
// not see them.
const forgedLabel = "e2e.celset.dev/forged"

// claimsLedger is a ledger that also knows what pods had whose claims are gone.
type claimsLedger struct {
	*ledger.Ledger
	cancel context.CancelFunc
	done   <-chan struct{}

	mu   sync.Mutex
	last map[types.UID][]string // devices by the pod that the claim was made for
}

// keepLedger keeps a ledger of a cluster without claims until it is closed.
func keepLedger(ctx context.Context) (*claimsLedger, error) {
	l := &claimsLedger{last: map[types.UID][]string{}}
	l.Ledger = ledger.New(l.remember)
	ctx, l.cancel = context.WithCancel(ctx)
	var err error
	l.done, err = l.Follow(ctx, client(), metav1.NamespaceAll, "!"+forgedLabel)
	return l, err
}

func (l *claimsLedger) close() {
	l.cancel()
	<-l.done
}

// remember finds nothing wrong: the stories judge what pods have.
func (l *claimsLedger) remember(claim *resourceapi.ResourceClaim) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, owner := range claim.OwnerReferences {
		l.last[owner.UID] = ledger.DevicesOf(claim)
	}
	return ""
}

// devices are those of the claim that was made for a pod, or had been before the claim
// went. The name in the pod's status is of no use then: it may be that of a second claim,
// made after the first was gone, before all had heard that the pod had ended. The ledger
// may be a little behind the API server.
func (l *claimsLedger) devices(ctx context.Context, pod types.UID) ([]string, error) {
	var devices []string
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(context.Context) (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		devices = slices.Clone(l.last[pod])
		return len(devices) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("no claim of it has ever had a device: %w", err)
	}
	return devices, nil
}
