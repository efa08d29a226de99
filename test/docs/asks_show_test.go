// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/test/internal/render"
)

// occupanciesEnv names the environment variable with the number of random occupancies for each ask. An occupancy is a set of
// devices in use.
const (
	occupanciesEnv     = "CELSET_OCCUPANCIES"
	defaultOccupancies = 300
	// pageOccupancies is the number of occupancies that the figures on the page are based on.
	pageOccupancies = 10_000
)

// TestAsks allocates the claims of the machine pages on nodes where random devices are in use. The claim must get the set that
// an exhaustive search in Go finds, or no set if no set is right. The test also counts how often a claim as written without
// celset gets a right set.
func TestAsks(t *testing.T) {
	wanted := defaultOccupancies
	if text := os.Getenv(occupanciesEnv); text != "" {
		var err error
		wanted, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	today := todaysTemplates(t)
	var table strings.Builder
	fmt.Fprintf(&table, "| machine | what is asked for | claim | celset | pinned, as today | pinned to |\n|---|---|---|---|---|---|\n")
	for _, a := range asks {
		t.Run(a.page+" "+a.template, func(t *testing.T) {
			b := newBench(t, a)
			p := readHardwarePage(t, a.page)
			ours := newTrial(t, b, p, p.templates[a.template])
			var pinned *trial
			if a.today != "" {
				vendors := &hardwarePage{classes: withoutConstraints(p.classes), templates: p.templates}
				pinned = newTrial(t, b, vendors, today[a.today])
			}
			s := b.compare(t, ours, pinned, newRandom(a.seed), wanted)
			if pinned != nil {
				fmt.Fprintf(&table, "| %s | %s | [`%s`](%s) | %s | %s | %s |\n",
					b.machine, a.what, a.template, a.page, percent(s.byUs, s.found), percent(s.byPinned, s.found), a.pinnedTo)
			}
			for _, counts := range a.also {
				b := newBench(t, a.sized(counts))
				template := p.templates[a.template].DeepCopy()
				for i, count := range counts {
					template.Spec.Spec.Devices.Requests[i].Exactly.Count = int64(count)
				}
				b.compare(t, newTrial(t, b, p, template), nil, newRandom(a.seed), wanted)
			}
		})
	}
	t.Logf("%d occupancies for each ask, in all of which there is a set:\n%s", wanted, table.String())
	if wanted == pageOccupancies {
		checkGenerated(t, filepath.Join("docs", "hardware", "README.md"), map[string]string{"asks": table.String()})
	}
}

// A score counts occupancies. In found of them, some right set is free. In without, no right set is free. byUs and byPinned
// count the found occupancies where a claim gets a right set: the claim with our constraint, or as written without celset.
type score struct{ found, byUs, byPinned, without int }

// compare allocates the claims in random occupancies, until wanted of them had a right set. It tests at most wanted occupancies
// without a right set.
func (b *bench) compare(t *testing.T, ours, pinned *trial, random *rand.Rand, wanted int) score {
	t.Helper()
	var s score
	for s.found < wanted {
		o := b.occupied(random)
		first := b.firstIn(o)
		if first == 0 && s.without == wanted {
			continue
		}
		got := ours.allocate(t, o)
		assert.Equal(t, b.names(first), b.names(got), "in use: %v, CPUs in use: %v", b.names(o.inUse), o.cpus)
		if first == 0 {
			s.without++
			continue
		}
		s.found++
		if got == first {
			s.byUs++
		}
		if pinned != nil && slices.Contains(b.right, pinned.allocate(t, o)) {
			s.byPinned++
		}
	}
	t.Logf("%v: %d occupancies with a set, %d without", b.counts(), s.found, s.without)
	return s
}

func percent(part, whole int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// occupied holds the devices in use on a node. cpus maps the index of a shared device to the number of its CPUs in use.
type occupied struct {
	inUse shape.Set
	cpus  map[int]int64
}

// occupied generates the devices in use. It first chooses a random share of the node, and then uses each device with this
// probability.
func (b *bench) occupied(r *rand.Rand) occupied {
	const mostFull, cpusAtOnce = 0.8, 4
	o := occupied{inUse: b.random(r, mostFull*r.Float64()), cpus: map[int]int64{}}
	for i, d := range b.topology.Devices {
		if d.AllowMultipleAllocations {
			o.inUse &^= 1 << i
			o.cpus[i] = cpusAtOnce * r.Int64N(cpusOf(d)/cpusAtOnce+1)
		}
	}
	return o
}

// firstIn is like [bench.first], but it excludes shared devices that have too few CPUs left.
func (b *bench) firstIn(o occupied) shape.Set {
	inUse := o.inUse
	for i, taken := range o.cpus {
		for _, w := range b.wants {
			if d := b.topology.Devices[i]; w.may(d) && taken+w.cpus > cpusOf(d) {
				inUse |= 1 << i
			}
		}
	}
	return b.first(inUse)
}

// A trial allocates one claim for many occupancies. Its searches share a cache, like the searches of a scheduler.
type trial struct {
	bench   *bench
	example *example
	page    *hardwarePage
	claim   *resourceapi.ResourceClaim
	compile *dracel.Cache
	cache   *allocator.Cache
}

func newTrial(t *testing.T, b *bench, p *hardwarePage, template *resourceapi.ResourceClaimTemplate) *trial {
	t.Helper()
	require.NotNil(t, template)
	e := onTopology(t, b.template, b.topology)
	claim := p.problem(t, e, 0).Claims[0].DeepCopy()
	claim.Spec = template.Spec.Spec
	return &trial{
		bench: b, example: e, page: p, claim: claim,
		compile: dracel.NewCache(10, selectorFeatures), cache: allocator.NewCache(),
	}
}

// allocate returns the devices that the claim gets in an occupancy, or the empty set.
func (tr *trial) allocate(t *testing.T, o occupied) shape.Set {
	t.Helper()
	problem := &allocator.Problem{
		Claims: []*resourceapi.ResourceClaim{tr.claim}, Allocated: tr.example.allocated(o.inUse),
		Classes: tr.page.classes, Slices: tr.bench.slices, Features: allFeatures,
		Selectors: tr.compile, Options: []allocator.Option{allocator.WithCache(tr.cache)},
	}
	for i, taken := range o.cpus {
		if taken > 0 {
			problem.Allocated = append(problem.Allocated, share(fmt.Sprintf("cpus-%d", i), tr.bench.topology.Devices[i], taken))
		}
	}
	a, err := problem.NewAllocator(t.Context())
	require.NoError(t, err)
	results, err := a.Allocate(t.Context(), node, problem.Claims)
	if errors.Is(err, structured.ErrFailedAllocationOnNode) {
		return 0
	}
	require.NoError(t, err)
	var names []string
	for _, claim := range results {
		for _, result := range claim.Devices.Results {
			names = append(names, result.Device)
		}
	}
	return tr.bench.places(t, names)
}

// withoutConstraints returns the classes without celset's configuration, as vendors ship them today.
func withoutConstraints(classes classList) classList {
	var plain classList
	for _, class := range classes {
		class = class.DeepCopy()
		class.Spec.Config = nil
		plain = append(plain, class)
	}
	return plain
}

// todaysTemplates returns the templates of testdata/today.yaml.
func todaysTemplates(t *testing.T) map[string]*resourceapi.ResourceClaimTemplate {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "today.yaml"))
	require.NoError(t, err)
	decoded, err := render.Decode(content)
	require.NoError(t, err)
	templates := map[string]*resourceapi.ResourceClaimTemplate{}
	for _, object := range decoded {
		template := typed[resourceapi.ResourceClaimTemplate](t, object)
		require.NotContains(t, templates, template.Name)
		templates[template.Name] = template
	}
	return templates
}
