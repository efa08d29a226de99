// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// FollowStore is Follow where API servers end and begin: after that a watch of theirs has
// gaps. It reads what is stored in etcd at an endpoint, whose history goes on when etcd
// itself is ended and started again. The claims are those of one namespace, stored as
// resource.k8s.io/v1.
func (l *Ledger) FollowStore(ctx context.Context, endpoint, namespace string) (done <-chan struct{}, err error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	prefix := "/registry/resourceclaims/" + namespace + "/"
	stored, err := client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	for _, pair := range stored.Kvs {
		l.enterStored(watch.Added, pair.Value, pair.ModRevision)
	}
	versions := client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(stored.Header.Revision+1))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer client.Close()
		for response := range versions {
			if err := response.Err(); err != nil && ctx.Err() == nil {
				l.gap(err)
			}
			for _, event := range response.Events {
				kind, pair := watch.Modified, event.Kv
				if event.Type == clientv3.EventTypeDelete {
					kind, pair = watch.Deleted, event.PrevKv
				}
				l.enterStored(kind, pair.Value, event.Kv.ModRevision)
			}
		}
		if ctx.Err() == nil {
			l.gap(errors.New("the watch of etcd has ended"))
		}
	}()
	return ended, nil
}

func (l *Ledger) enterStored(kind watch.EventType, value []byte, revision int64) {
	claim, err := decodeStored(value)
	if err != nil {
		l.gap(err)
		return
	}
	claim.ResourceVersion = strconv.FormatInt(revision, 10)
	l.Enter(watch.Event{Type: kind, Object: claim})
}

func decodeStored(value []byte) (*resourceapi.ResourceClaim, error) {
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("a claim in etcd: %w", err)
	}
	claim, ok := object.(*resourceapi.ResourceClaim)
	if !ok {
		return nil, fmt.Errorf("a claim in etcd is a %s, and not of the version that is read here", kind)
	}
	return claim, nil
}

// gap says that from here on versions are missing.
func (l *Ledger) gap(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violations = append(l.violations, fmt.Sprintf("versions of claims are missing: %v", err))
}
