// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

func rings() []Expression {
	return ring.of([]written{
		{"four contiguous, as in the KEP", []int{4}, `size(devices) == 4 &&
			devices.map(d, d.attributes['mla.example.com'].index).max() -
			devices.map(d, d.attributes['mla.example.com'].index).min() == 3`},
		{"contiguous, any number", []int{3}, `cel.bind(all, devices.map(d, d.attributes['mla.example.com'].index),
			all.max() - all.min() == all.size() - 1)`},
		{"contiguous around the end", []int{4}, `devices.filter(d, devices.exists(o,
			o.attributes['mla.example.com'].index == (d.attributes['mla.example.com'].index + 1) % 8)).size() >= devices.size() - 1`},
		{"from an aligned start", []int{4}, `devices.map(d, d.attributes['mla.example.com'].index / 4).distinct().size() == 1`},
		{"from one of the starts", []int{2}, `[0, 2, 4, 6].exists(s, devices.all(d,
			d.attributes['mla.example.com'].index >= s && d.attributes['mla.example.com'].index < s + 2))`},
		{"sorted and without gaps", []int{3}, `devices.all(i, d, i == 0 ||
			d.attributes['mla.example.com'].index == devices[i - 1].attributes['mla.example.com'].index + 1)`},
		{"by place", []int{3}, `devices.transformList(i, d, d.attributes['mla.example.com'].index - i).distinct().size() == 1`},
		{"exactly these values", []int{4}, `devices.map(d, d.attributes['mla.example.com'].index).sort() in [[0, 1, 2, 3], [4, 5, 6, 7]]`},
		{"no two are neighbours", []int{3}, `devices.all(d, !devices.exists(o,
			o.attributes['mla.example.com'].index == (d.attributes['mla.example.com'].index + 1) % 8))`},
		{"opposite each other", []int{4}, `devices.all(d, devices.exists_one(o,
			(d.attributes['mla.example.com'].index + 4) % 8 == o.attributes['mla.example.com'].index))`},
		{"as many even as odd", []int{4}, `devices.filter(d, d.attributes['mla.example.com'].index % 2 == 0).size() ==
			devices.filter(d, d.attributes['mla.example.com'].index % 2 == 1).size()`},
		{"two requests side by side", []int{2, 2}, `devices.map(d, d.attributes['mla.example.com'].index).max() -
			devices.map(d, d.attributes['mla.example.com'].index).min() <= 3`},
	})
}

func meshes() []Expression {
	return mesh.of([]written{
		{"2x2, as in the KEP", []int{4}, `size(devices) == 4 &&
			devices.all(d,
			  devices.filter(other,
			    d != other &&
			    ((d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row &&
			      (d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col + 1 ||
			       d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col - 1)) ||
			     (d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col &&
			      (d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row + 1 ||
			       d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row - 1)))
			  ).size() >= 2
			)`},
		{"2x2, by bounding box", []int{4}, `devices.map(d, d.attributes['mla.example.com'].row).max() - devices.map(d, d.attributes['mla.example.com'].row).min() == 1 &&
			devices.map(d, d.attributes['mla.example.com'].col).max() - devices.map(d, d.attributes['mla.example.com'].col).min() == 1`},
		{"2x2, with names", []int{4}, `cel.bind(rows, devices.map(d, d.attributes['mla.example.com'].row),
			cel.bind(cols, devices.map(d, d.attributes['mla.example.com'].col),
			rows.max() - rows.min() == 1 && cols.max() - cols.min() == 1))`},
		{"2x2, by distance", []int{4}, `devices.all(d, devices.filter(o, d != o &&
			cel.bind(r, d.attributes['mla.example.com'].row - o.attributes['mla.example.com'].row,
			cel.bind(c, d.attributes['mla.example.com'].col - o.attributes['mla.example.com'].col,
			r * r + c * c == 1))).size() >= 2)`},
		{"a row", []int{3}, `devices.all(d, d.attributes['mla.example.com'].row == devices[0].attributes['mla.example.com'].row)`},
		{"a row or a column", []int{3}, `devices.map(d, d.attributes['mla.example.com'].row).distinct().size() == 1 ||
			devices.map(d, d.attributes['mla.example.com'].col).distinct().size() == 1`},
		{"a diagonal", []int{3}, `devices.map(d, d.attributes['mla.example.com'].row - d.attributes['mla.example.com'].col).distinct().size() == 1`},
		{"all rows differ", []int{3}, `devices.map(d, d.attributes['mla.example.com'].row).distinct().size() == devices.size()`},
		{"connected in a line", []int{3}, `devices.filter(d, devices.exists(o, d != o &&
			d.attributes['mla.example.com'].row == o.attributes['mla.example.com'].row &&
			d.attributes['mla.example.com'].col + 1 == o.attributes['mla.example.com'].col)).size() == devices.size() - 1`},
		{"with the centre", []int{3}, `devices.exists_one(d, d.attributes['mla.example.com'].row == 1 && d.attributes['mla.example.com'].col == 1)`},
	})
}

func toruses() []Expression {
	return torus.of([]written{
		{"each has two neighbours", []int{4}, `devices.all(d, devices.filter(o, d != o && (
			d.attributes['mla.example.com'].row == o.attributes['mla.example.com'].row &&
			  (d.attributes['mla.example.com'].col - o.attributes['mla.example.com'].col + 3) % 3 in [1, 2] ||
			d.attributes['mla.example.com'].col == o.attributes['mla.example.com'].col &&
			  (d.attributes['mla.example.com'].row - o.attributes['mla.example.com'].row + 3) % 3 in [1, 2])).size() >= 2)`},
		{"a closed row", []int{3}, `devices.all(d, devices.exists(o,
			o.attributes['mla.example.com'].row == d.attributes['mla.example.com'].row &&
			o.attributes['mla.example.com'].col == (d.attributes['mla.example.com'].col + 1) % 3))`},
		{"2x2 around the edges", []int{4}, `devices.exists(corner, devices.all(d,
			(d.attributes['mla.example.com'].row - corner.attributes['mla.example.com'].row + 3) % 3 < 2 &&
			(d.attributes['mla.example.com'].col - corner.attributes['mla.example.com'].col + 3) % 3 < 2))`},
		{"one of each row and column", []int{3}, `[0, 1, 2].all(i,
			devices.exists_one(d, d.attributes['mla.example.com'].row == i) &&
			devices.exists_one(d, d.attributes['mla.example.com'].col == i))`},
	})
}

func boards() []Expression {
	return board.of([]written{
		{"2x2 or 1x4", []int{4}, `cel.bind(h, devices.map(d, d.attributes['mla.example.com'].row).max() - devices.map(d, d.attributes['mla.example.com'].row).min() + 1,
			cel.bind(w, devices.map(d, d.attributes['mla.example.com'].col).max() - devices.map(d, d.attributes['mla.example.com'].col).min() + 1,
			h * w == devices.size()))`},
		{"either orientation", []int{2}, `
			devices.map(d, d.attributes['mla.example.com'].row).max() == devices.map(d, d.attributes['mla.example.com'].row).min() &&
			devices.map(d, d.attributes['mla.example.com'].col).max() - devices.map(d, d.attributes['mla.example.com'].col).min() == 1 ||
			devices.map(d, d.attributes['mla.example.com'].col).max() == devices.map(d, d.attributes['mla.example.com'].col).min() &&
			devices.map(d, d.attributes['mla.example.com'].row).max() - devices.map(d, d.attributes['mla.example.com'].row).min() == 1`},
		{"depends on the number", []int{4}, `devices.size() == 4 ?
			devices.map(d, d.attributes['mla.example.com'].row).distinct().size() == 2 && devices.map(d, d.attributes['mla.example.com'].col).distinct().size() == 2 :
			devices.map(d, d.attributes['mla.example.com'].row).distinct().size() == 1`},
		{"both rows alike", []int{4}, `sets.equivalent(
			devices.filter(d, d.attributes['mla.example.com'].row == 0).map(d, d.attributes['mla.example.com'].col),
			devices.filter(d, d.attributes['mla.example.com'].row == 1).map(d, d.attributes['mla.example.com'].col))`},
		{"sum of the columns", []int{4}, `devices.map(d, d.attributes['mla.example.com'].col).sum() * 2 == 3 * devices.size()`},
	})
}

func bridges() []Expression {
	return bridged.of([]written{
		{"a pair", []int{2}, `devices.all(d, d.attributes['gpu.example.com'].bridge == devices[0].attributes['gpu.example.com'].bridge)`},
		{"whole pairs", []int{4}, `devices.all(d, devices.exists_one(o, d != o && d.attributes['gpu.example.com'].bridge == o.attributes['gpu.example.com'].bridge))`},
		{"whole pairs, counted", []int{4}, `devices.map(d, d.attributes['gpu.example.com'].bridge).distinct().size() * 2 == devices.size()`},
		{"whole pairs, by value", []int{4}, `devices.map(d, d.attributes['gpu.example.com'].bridge).all(b,
			devices.filter(d, d.attributes['gpu.example.com'].bridge == b).size() == 2)`},
		{"all below different bridges", []int{3}, `devices.map(d, d.attributes['gpu.example.com'].bridge).distinct().size() == devices.size()`},
		{"on the first two bridges", []int{3}, `sets.contains(['bridge-0', 'bridge-1'], devices.map(d, d.attributes['gpu.example.com'].bridge))`},
		{"at least one whole pair", []int{3}, `devices.exists(d, devices.exists(o, d != o &&
			d.attributes['gpu.example.com'].bridge == o.attributes['gpu.example.com'].bridge))`},
		{"bridges with even numbers", []int{2}, `devices.all(d, int(d.attributes['gpu.example.com'].bridge.split('-')[1]) % 2 == 0)`},
	})
}

func cubes() []Expression {
	return cube.of([]written{
		{"all linked to all, by list", []int{4}, `devices.all(d, devices.all(o, d == o ||
			o.attributes['gpu.example.com'].id in d.attributes['gpu.example.com'].peerList))`},
		{"all linked to all, by text", []int{4}, `devices.all(d, devices.all(o, d == o ||
			o.attributes['gpu.example.com'].id in d.attributes['gpu.example.com'].peers.split(',')))`},
		{"all linked to all, by sets", []int{3}, `cel.bind(ids, devices.map(d, d.attributes['gpu.example.com'].id),
			devices.all(d, sets.contains(d.attributes['gpu.example.com'].peerList + [d.attributes['gpu.example.com'].id], ids)))`},
		{"all linked to all, by text search", []int{3}, `devices.all(d, devices.filter(o,
			d.attributes['gpu.example.com'].peers.contains(o.attributes['gpu.example.com'].id)).size() == devices.size() - 1)`},
		{"a pair across", []int{2}, `devices.all(i, d, devices.all(j, o, i == j ||
			d.attributes['gpu.example.com'].peerList.exists(p, p == o.attributes['gpu.example.com'].id) &&
			d.attributes['gpu.example.com'].peerList.exists_one(p, o.attributes['gpu.example.com'].peerList.exists(q, q == p)) == false))`},
		{"a ring of four", []int{4}, `devices.all(d, devices.filter(o, o.attributes['gpu.example.com'].id in d.attributes['gpu.example.com'].peerList).size() >= 2)`},
		{"one is linked to all", []int{4}, `devices.exists(hub, devices.all(d, d == hub || d.attributes['gpu.example.com'].id in hub.attributes['gpu.example.com'].peerList))`},
	})
}

func couples() []Expression {
	return coupled.of([]written{
		{"one NIC per GPU at the same root", []int{2, 2}, `devices.all(d, devices.exists_one(o, o.driver != d.driver &&
			o.attributes['resource.kubernetes.io'].pcieRoot == d.attributes['resource.kubernetes.io'].pcieRoot))`},
		{"one NIC per GPU, by filters", []int{2, 2}, `devices.filter(g, g.driver == 'gpu.example.com').all(g,
			devices.filter(n, n.driver == 'nic.example.com').exists_one(n,
			n.attributes['resource.kubernetes.io'].pcieRoot == g.attributes['resource.kubernetes.io'].pcieRoot))`},
		{"the same roots", []int{2, 2}, `sets.equivalent(
			devices.filter(d, d.driver == 'gpu.example.com').map(d, d.attributes['resource.kubernetes.io'].pcieRoot),
			devices.filter(d, d.driver == 'nic.example.com').map(d, d.attributes['resource.kubernetes.io'].pcieRoot))`},
		{"the same roots in order", []int{2, 2}, `
			devices.filter(d, d.driver == 'gpu.example.com').map(d, d.attributes['resource.kubernetes.io'].pcieRoot) ==
			devices.filter(d, d.driver == 'nic.example.com').map(d, d.attributes['resource.kubernetes.io'].pcieRoot)`},
		{"a NIC near one of the GPUs", []int{2, 1}, `devices.filter(d, d.driver == 'nic.example.com').all(n,
			devices.exists(g, g != n && g.attributes['resource.kubernetes.io'].pcieRoot == n.attributes['resource.kubernetes.io'].pcieRoot))`},
		{"no root is shared", []int{2, 1}, `devices.map(d, d.attributes['resource.kubernetes.io'].pcieRoot).distinct().size() == devices.size()`},
		{"by place", []int{2, 2}, `[0, 1].all(i, devices[i].attributes['resource.kubernetes.io'].pcieRoot == devices[i + 2].attributes['resource.kubernetes.io'].pcieRoot)`},
	})
}
