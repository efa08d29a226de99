// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/render"
	"github.com/celset/celset/internal/testing/shape"
)

// occupanciesEnv says in how many occupancies each ask is tried.
const (
	occupanciesEnv     = "CELSET_OCCUPANCIES"
	defaultOccupancies = 300
	// toldOccupancies are those of which the page has the figures.
	toldOccupancies = 10_000
)

// TestAsks takes the claims of the pages about machines to nodes of which random devices are in
// use. Where a dumb search in Go finds a set, the claim has to get that set, and where it finds
// none, none. Beside it stands how often the claim that is written today gets what is asked for.
func TestAsks(t *testing.T) {
	wanted := defaultOccupancies
	if text := os.Getenv(occupanciesEnv); text != "" {
		var err error
		wanted, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	today := todaysTemplates(t)
	var table strings.Builder
	fmt.Fprintf(&table, "| machine | what is asked for | template | celset | pinned, as today | pinned by |\n|---|---|---|---|---|---|\n")
	for i, a := range asks {
		t.Run(a.page+" "+a.template, func(t *testing.T) {
			b := newBench(t, a)
			p := readHardwarePage(t, a.page)
			template := p.templates[a.template]
			require.NotNil(t, template)
			ours := newTrial(t, b, p, template)
			var pinned *trial
			if a.today != "" {
				require.Contains(t, today, a.today)
				pinned = newTrial(t, b, &hardwarePage{classes: withoutConstraints(p.classes), templates: p.templates}, today[a.today])
			}
			found, byUs, byPinned, unsatisfiable := 0, 0, 0, 0
			random := newRandom(uint64(i))
			for found < wanted {
				o := b.occupied(random)
				first := b.firstIn(o)
				if first == 0 && unsatisfiable == wanted {
					continue
				}
				got := ours.allocate(t, o)
				assert.Equal(t, b.names(first), b.names(got), "in use: %v, CPUs in use: %v", b.names(o.inUse), o.cpus)
				if first == 0 {
					unsatisfiable++
					continue
				}
				found++
				if got == first {
					byUs++
				}
				if pinned != nil && b.isRight(pinned.allocate(t, o)) {
					byPinned++
				}
			}
			t.Logf("%d occupancies with a set, %d without", found, unsatisfiable)
			if pinned != nil {
				fmt.Fprintf(&table, "| %s | %s | [`%s`](%s) | %s | %s | %s |\n",
					b.machine, a.what, a.template, a.page, percent(byUs, found), percent(byPinned, found), a.pinnedBy)
			}
		})
	}
	t.Logf("%d occupancies for each ask, in all of which there is a set:\n%s", wanted, table.String())
	if wanted == toldOccupancies {
		checkGenerated(t, filepath.Join("docs", "hardware", "README.md"), map[string]string{"asks": table.String()})
	}
}

func percent(part, whole int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// occupied is what is in use on a node: whole devices, and of shared ones so many CPUs.
type occupied struct {
	inUse shape.Set
	cpus  map[int]int64
}

// occupied draws how full the node is, and then what is in use.
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

// firstIn is what [bench.first] is, with shared devices of which enough is left.
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

// isRight tells whether a set is one of those asked for.
func (b *bench) isRight(set shape.Set) bool {
	for _, right := range b.right {
		if set == right {
			return true
		}
	}
	return false
}

// trial allocates one claim again and again. Searches share what they find out, as those of a
// scheduler do.
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
	e := onTopology(t, b.template, b.topology)
	claim := p.problem(t, e, 0).Claims[0].DeepCopy()
	claim.Spec = template.Spec.Spec
	return &trial{
		bench: b, example: e, page: p, claim: claim,
		compile: dracel.NewCache(10, selectorFeatures), cache: allocator.NewCache(),
	}
}

// allocate returns the devices that the claim gets, none if it gets none.
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

// withoutConstraints are the classes as vendors ship them today.
func withoutConstraints(classes classList) classList {
	var plain classList
	for _, class := range classes {
		class = class.DeepCopy()
		class.Spec.Config = nil
		plain = append(plain, class)
	}
	return plain
}

// todaysTemplates are those of testdata/today.yaml.
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
