// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import "slices"

// askedOfFunctions use the functions over sets that CEL lacks.
func askedOfFunctions() []Expression {
	const (
		linked = `[a@x - b@x, a@y - b@y, a@z - b@z].map(n, n % 4).filter(n, n != 0).map(n, n == 2 || n == -2 ? 2 : 1).sum() == 1`
		beside = `(a@topology_x == b@topology_x && (a@topology_y - b@topology_y) % 4 in [1, -1, 3, -3]) || (a@topology_y == b@topology_y && (a@topology_x - b@topology_x) % 4 in [1, -1, 3, -3])`
		gpus   = `devices.filter(d, d.driver == 'gpu.nvidia.com')`
		nics   = `devices.filter(d, d.driver == 'dra.net')`
	)
	return slices.Concat(
		chipTorus.asked([]written{
			{"functions: connected", []int{8}, `devices.connected(a, b, ` + linked + `)`},
			{"functions: a ring of four", []int{4}, `devices.ring(a, b, ` + linked + `)`},
			{"functions: a ring of eight", []int{8}, `devices.ring(a, b, ` + linked + `)`},
			{"functions: a path", []int{6}, `devices.path(a, b, ` + linked + `)`},
			{"functions: a cube", []int{8}, `devices.box(d, [d@x, d@y, d@z], [2, 2, 2])`},
			{"functions: a cube around the end", []int{8}, `devices.box(d, [d@x, d@y, d@z], [2, 2, 2], [4, 4, 4])`},
			{"functions: four by two by one, any way", []int{8}, `devices.box(d, [d@x, d@y, d@z], [4, 2, 1], [4, 4, 4])`},
			{"functions: a plane", []int{16}, `devices.box(d, [d@x, d@y, d@z], [4, 4, 1])`},
		}),
		neurons.asked([]written{
			{"functions: 2x2", []int{4}, `devices.box(d, [d@topology_x, d@topology_y], [2, 2])`},
			{"functions: 2x2 around the end", []int{4}, `devices.box(d, [d@topology_x, d@topology_y], [2, 2], [4, 4])`},
			{"functions: 2x4 either way", []int{8}, `devices.box(d, [d@topology_x, d@topology_y], [2, 4], [4, 4])`},
			{"functions: a ring", []int{8}, `devices.ring(a, b, ` + beside + `)`},
			{"functions: connected chips", []int{6}, `devices.connected(a, b, ` + beside + `)`},
			{"functions: a stretch", []int{5}, `devices.path(a, b, ` + beside + `)`},
		}),
		rack.asked([]written{
			{"functions: a clique of trays", []int{8}, `devices.clique(a, b, a@tray - b@tray in [-1, 0, 1])`},
			{"functions: named peers", []int{4}, `devices.ring(a, b, a@peers.includes(b@name))`},
			{"functions: connected by names", []int{4}, `devices.connected(a, b, a@peers.sameOrIncludes(b@name))`},
			{"functions: a block of trays", []int{16}, `devices.box(d, [d@tray], [4])`},
		}),
		rails.asked([]written{
			{"functions: couples", []int{4, 4}, gpus + `.paired(` + nics + `, g, n, g~pcieRoot == n~pcieRoot)`},
			{"functions: two GPUs for a NIC", []int{8, 4}, gpus + `.paired(` + nics + `, g, n, g~pcieRoot == n~pcieRoot)`},
			{"functions: two NICs for a GPU", []int{3, 6}, gpus + `.paired(` + nics + `, g, n, g~pcieRoot.sameOrIncludes(n~pcieRoot))`},
			{"functions: fast couples", []int{4, 4}, gpus + `.paired(` + nics + `, g, n, g~pcieRoot == n~pcieRoot && n#speedGbps >= 200)`},
			{"functions: GPUs beside each other", []int{4}, gpus + `.path(a, b, a@index - b@index == 1)`},
		}),
	)
}
