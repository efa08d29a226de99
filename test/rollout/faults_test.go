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
	// checkEvery is the number of actions between two pauses. In a pause the faults end until everything is settled, and the history
	// so far is checked.
	checkEvery = 8
	// checkTimeout limits the check of one device's history.
	checkTimeout = time.Minute
)

// A faultsRun has the duration, the seed, and the directory for histories that can't be explained.
type faultsRun struct {
	duration time.Duration
	seed     uint64
	log      string // path of the file, or empty
	dir      string
}

// chosenFaults returns a run of at least the duration in CELSET_FAULTS. Every action happens at least once.
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

// TestFaults runs two schedulers and the controller manager under faults. Their requests are lost, delayed or refused; they are
// killed, paused and cut off, and so are the API server and etcd. Pods of all kinds come and go that want more devices than
// exist. For half of the time a guard refuses double allocations. Its replicas fail like all others, and a scheduler may then be
// paused beyond its lease.
//
// From time to time the faults stop until everything has settled. Then no trace of the faults may be left: no wrong owner of a
// device, no lost or half-written claim, no pod that waits for available devices. A device never had two claims, neither in
// storage nor in the answers to programs.
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

// run runs actions for the duration of the run.
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

// newTrouble starts the schedulers. guards may be nil.
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

// trouble runs an action while pods come and go.
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

// read lists all claims for the history.
func (w *workload) read(t *testing.T) {
	t.Helper()
	began := time.Now()
	cluster.history.Read(w.listClaims(t), began)
}

// beginHistory begins a new history with the existing claims.
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

// settle ends all faults, waits until everything is settled (requireSettled), and returns the duration. It checks the history so
// far, and begins a new one.
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

// store stores a history, and drawings of the devices that it does not explain.
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

// end deletes all pods. Then all devices must be free, and complete sets of them available.
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
