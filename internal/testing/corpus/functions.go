// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import "slices"

// functions have those over sets that CEL lacks.
func functions() []Expression {
	return slices.Concat(
		ring.of([]written{
			{"joined in a ring", []int{4}, `devices.connected(a, b, b.attributes['mla.example.com'].index == (a.attributes['mla.example.com'].index + 1) % 8)`},
			{"a row of the ring", []int{3}, `devices.path(a, b, b.attributes['mla.example.com'].index == (a.attributes['mla.example.com'].index + 1) % 8)`},
			{"a stretch around the end", []int{3}, `devices.box(d, [d.attributes['mla.example.com'].index], [3], [8])`},
			{"not joined", []int{3}, `!devices.connected(a, b, b.attributes['mla.example.com'].index == (a.attributes['mla.example.com'].index + 1) % 8)`},
		}),
		mesh.of([]written{
			{"a ring in a mesh", []int{4}, `devices.ring(a, b,
				a.attributes['mla.example.com'].row == b.attributes['mla.example.com'].row && a.attributes['mla.example.com'].col + 1 == b.attributes['mla.example.com'].col ||
				a.attributes['mla.example.com'].col == b.attributes['mla.example.com'].col && a.attributes['mla.example.com'].row + 1 == b.attributes['mla.example.com'].row)`},
			{"a box either way", []int{3}, `devices.box(d, [d.attributes['mla.example.com'].row, d.attributes['mla.example.com'].col], [3, 1])`},
		}),
		torus.of([]written{
			{"a box around the edges", []int{4}, `devices.box(d, [d.attributes['mla.example.com'].row, d.attributes['mla.example.com'].col], [2, 2], [3, 3])`},
		}),
		cube.of([]written{
			{"a clique, by list or text", []int{4}, `devices.clique(a, b, a.attributes['gpu.example.com'].peerList.sameOrIncludes(b.attributes['gpu.example.com'].id))`},
			{"a ring of peers", []int{4}, `devices.ring(a, b, b.attributes['gpu.example.com'].id in a.attributes['gpu.example.com'].peerList)`},
		}),
		coupled.of([]written{
			{"paired at their roots", []int{2, 2}, `devices.filter(g, g.driver == 'gpu.example.com').paired(devices.filter(n, n.driver == 'nic.example.com'), g, n,
				g.attributes['resource.kubernetes.io'].pcieRoot == n.attributes['resource.kubernetes.io'].pcieRoot)`},
		}),
	)
}
