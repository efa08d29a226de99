// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/faults"
	"github.com/celset/celset/test/internal/history"
	"github.com/celset/celset/test/internal/minor"
)

const (
	// checkEvery is the number of actions after which the faults stop. The test then waits until all pods are settled, and
	// checks the history.
	checkEvery = 8
	// checkTimeout is the time limit for checking the history of one device.
	checkTimeout = time.Minute
)

// A faultsRun holds the duration of a run, its seed, and the directory for histories that the check rejects.
type faultsRun struct {
	duration time.Duration
	seed     uint64
	log      string // path of the file, or empty
	dir      string
}

// chosenFaults returns a run of the duration in CELSET_FAULTS. The run takes longer if some action has not happened by then.
func chosenFaults(t *testing.T) faultsRun {
	t.Helper()
	r := faultsRun{seed: uint64(time.Now().UnixNano()), log: os.Getenv("CELSET_FAULTS_LOG"), dir: os.Getenv("CELSET_FAULTS_DIR")}
	var err error
	r.duration, err = time.ParseDuration(os.Getenv("CELSET_FAULTS"))
	require.NoError(t, err, "CELSET_FAULTS is how long things go wrong")
	if text := os.Getenv("CELSET_FAULTS_SEED"); text != "" {
		r.seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "CELSET_FAULTS_SEED is a number")
	}
	if r.dir == "" {
		r.dir, err = os.MkdirTemp("", "celset-histories-")
		require.NoError(t, err)
		t.Cleanup(func() {
			if !t.Failed() {
				_ = os.RemoveAll(r.dir)
			}
		})
	}
	return r
}

// TestFaults runs two schedulers and the controller manager with faults. Their requests are lost, delayed or rejected. These
// programs, the API server and etcd are killed, paused and disconnected. Meanwhile the test creates and deletes pods of all
// kinds, which need more devices than exist. For half of the time, a guard rejects double allocations. Then the guard's
// replicas fail, too, and a scheduler may be paused for longer than its lease.
//
// From time to time the faults stop until all pods are settled. Then no effect of the faults may be left: each device has the
// right owner, no claim is lost or incomplete, and no pod waits while devices for it are available. A device must never have
// been in two claims, neither in etcd nor in responses to programs.
func TestFaults(t *testing.T) {
	if os.Getenv("CELSET_FAULTS") == "" {
		t.Skip("it takes minutes: make faults")
	}
	if minor.Version() != "" {
		t.Skip("claims are stored in another version")
	}
	r := chosenFaults(t)
	t.Logf("CELSET_FAULTS_SEED=%d", r.seed)
	log := newProtocolFile(t, r.log)
	r.duration /= 2
	t.Run("without guard", func(t *testing.T) { r.run(t, &protocol{t, log}, nil) })
	t.Run("with guard", func(t *testing.T) { r.run(t, &protocol{t, log}, startGuards(t, r.seed+2)) })
}

// run applies all actions in random order, again and again, for the duration of the run.
func (r faultsRun) run(t *testing.T, p *protocol, g *guards) {
	t.Helper()
	random := rand.New(rand.NewPCG(r.seed, 23))
	w := newWorkloadAt(t, "faults", 3, true)
	u := newTrouble(t, w, r.seed, g)
	w.beginHistory(t)

	began, before := time.Now(), u.counts()
	p.printf("%s, seed %d; %d nodes with %d devices each, %d schedulers with a lease of %v", t.Name(), r.seed, len(w.nodes), len(ring.Devices)+len(mesh.Devices), len(u.schedulers), faultsLease)
	met, verdicts, longest := map[string]int{}, 0, time.Duration(0)
	for order := u.shuffled(random); len(order) > 0; {
		part := order[:min(checkEvery, len(order))]
		for _, a := range part {
			met[a.name]++
			u.trouble(t, w, a, random)
		}
		settled := u.settle(t, w, r)
		longest = max(longest, settled)
		verdicts++
		p.printf("%v: %s; settled after %v", time.Since(began).Round(time.Second), namesOf(part), settled.Round(time.Millisecond))
		if order = order[len(part):]; len(order) == 0 && time.Since(began) < r.duration {
			order = u.shuffled(random)
		}
	}
	p.summary(w, met, u.counts(), before)
	p.printf("the history was checked %d times; settled after at most %v", verdicts, longest.Round(time.Millisecond))
	u.end(t, w)
}

// shuffled returns all actions in random order.
func (u *trouble) shuffled(random *rand.Rand) []action {
	all := actions()
	if u.guards != nil {
		all = append(all, guardActions()...)
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// newTrouble starts the schedulers. guards is nil for a run without a guard.
func newTrouble(t *testing.T, w *workload, seed uint64, g *guards) *trouble {
	t.Helper()
	u := &trouble{usual: faults.Usual, guards: g}
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 2 {
		r := w.openReplica(t, fmt.Sprintf("scheduler-%d", i), seed+uint64(i))
		options := electing(t, r.name, faultsLease)
		options.Standby, options.Binary = true, cluster.Binary(controlplane.CelsetScheduler)
		maps.Copy(options.FeatureGates, gates)
		options.Kubeconfig = env.Kubeconfig(t, r.gate.server.URL)
		r.launch = func(ctx context.Context) (*controlplane.Process, error) {
			return cluster.ControlPlane.StartScheduler(ctx, options)
		}
		require.NoError(t, r.keep(ctx))
		u.schedulers = append(u.schedulers, r)
	}
	t.Cleanup(func() {
		u.set(faults.None)
		cancel()
		for _, r := range u.schedulers {
			r.end()
		}
	})
	return u
}

// trouble runs an action. Meanwhile it creates and deletes pods.
func (u *trouble) trouble(t *testing.T, w *workload, a action, random *rand.Rand) {
	t.Helper()
	u.chosen = random.IntN(1000)
	u.set(u.usual)
	w.churn(t, random)
	sleep(t.Context(), time.Duration(random.IntN(1000))*time.Millisecond)
	done := make(chan error, 1)
	go func() { done <- a.run(t.Context(), u) }()
	for ended := false; !ended; {
		select {
		case err := <-done:
			require.NoError(t, err, a.name)
			ended = true
		case <-time.After(time.Second):
			if !a.apart {
				w.churn(t, random)
				w.read(t)
			}
		}
	}
	w.churn(t, random)
	w.read(t)
	require.NoError(t, w.ledger.Entries().Err(), a.name)
}

// read lists all claims and adds the result to the history.
func (w *workload) read(t *testing.T) {
	t.Helper()
	began := time.Now()
	cluster.history.Read(w.listClaims(t), began)
}

// beginHistory starts a new history with the claims that exist now.
func (w *workload) beginHistory(t *testing.T) {
	t.Helper()
	began := time.Now()
	cluster.history.Begin(w.listClaims(t), began)
}

func (w *workload) listClaims(t *testing.T) []resourceapi.ResourceClaim {
	t.Helper()
	claims, err := client().ResourceV1().ResourceClaims(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return claims.Items
}

// settle stops all faults, waits until all pods are settled (requireSettled), and returns how long that took. It checks the
// history, and begins a new one.
func (u *trouble) settle(t *testing.T, w *workload, r faultsRun) time.Duration {
	t.Helper()
	u.set(faults.None)
	began := time.Now()
	w.requireSettled(t)
	settled := time.Since(began)
	w.deleteFreed(t)
	w.read(t)
	within, cancel := context.WithTimeout(t.Context(), env.Patience)
	defer cancel()
	require.NoError(t, cluster.history.Wait(within))
	verdict := cluster.history.Check(checkTimeout)
	if err := verdict.Err(); err != nil {
		require.NoError(t, store(cluster.history, verdict, r.dir))
		require.NoError(t, err, "the history and its drawings are in %s; CELSET_FAULTS_SEED=%d", r.dir, r.seed)
	}
	w.beginHistory(t)
	return settled
}

// store writes a history to a directory, with pictures of the devices whose operations the check rejects.
func store(h *history.History, verdict *history.Verdict, dir string) error {
	file, err := os.Create(filepath.Join(dir, "history.json"))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := h.Store(file); err != nil {
		return err
	}
	return verdict.Draw(dir)
}

// end deletes all pods. Then it requires that all devices are free, and that claims for complete sets can get them.
func (u *trouble) end(t *testing.T, w *workload) {
	t.Helper()
	w.deleteUntil(t, rand.New(rand.NewPCG(1, 1)), 0)
	w.requireSettled(t)
	w.deleteFreed(t)
	require.Empty(t, w.requireSettled(t))
	whole := []*kind{blockKind, blockKind}
	for range w.nodes {
		whole = append(whole, ringKind, ringKind)
	}
	w.requireBound(t, w.add(t, whole...)...)
}

func namesOf(actions []action) string {
	var names []string
	for _, a := range actions {
		names = append(names, a.name)
	}
	return strings.Join(names, ", ")
}
