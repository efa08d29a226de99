// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

func askedOfToruses() []Expression {
	return chipTorus.asked([]written{
		{"a cube of eight", []int{8}, `devices.map(d, d@x).max() - devices.map(d, d@x).min() == 1 && devices.map(d, d@y).max() - devices.map(d, d@y).min() == 1 && devices.map(d, d@z).max() - devices.map(d, d@z).min() == 1`},
		{"a box by distinct values", []int{8}, `devices.map(d, d@x).distinct().size() * devices.map(d, d@y).distinct().size() * devices.map(d, d@z).distinct().size() == size(devices)`},
		{"a cube by distinct values", []int{8}, `devices.map(d, d@x).distinct().size() == 2 && devices.map(d, d@y).distinct().size() == 2 && devices.map(d, d@z).distinct().size() == 2`},
		{"three links each", []int{8}, `devices.all(a, devices.filter(b, [(a@x - b@x + 4) % 4, (a@y - b@y + 4) % 4, (a@z - b@z + 4) % 4].filter(n, n == 1 || n == 3).size() == 1 && [a@x - b@x, a@y - b@y, a@z - b@z].filter(n, n == 0).size() == 2).size() == 3)`},
		{"two links each", []int{8}, `devices.all(a, devices.filter(b, (a@x == b@x ? 0 : ((a@x - b@x + 4) % 4 == 2 ? 2 : 1)) + (a@y == b@y ? 0 : ((a@y - b@y + 4) % 4 == 2 ? 2 : 1)) + (a@z == b@z ? 0 : ((a@z - b@z + 4) % 4 == 2 ? 2 : 1)) == 1).size() >= 2)`},
		{"a plane", []int{16}, `['x', 'y', 'z'].exists(axis, devices.map(d, d.attributes['tpu.google.com'][axis]).distinct().size() == 1)`},
		{"a line", []int{4}, `['x', 'y', 'z'].filter(axis, devices.map(d, d.attributes['tpu.google.com'][axis]).distinct().size() == 1).size() == 2`},
		{"a line by text", []int{4}, `[0, 1, 2].filter(i, devices.map(d, d@coords.split(',')[i]).distinct().size() == 1).size() == 2`},
		{"a ring along an axis", []int{4}, `devices.map(d, d@x).distinct().size() == 4 && devices.all(d, d@y == devices[0]@y && d@z == devices[0]@z)`},
		{"one corner and its neighbours", []int{4}, `devices.exists(c, devices.all(d, d == c || ((d@x - c@x) * (d@x - c@x) + (d@y - c@y) * (d@y - c@y) + (d@z - c@z) * (d@z - c@z)) == 1))`},
		{"no two beside each other", []int{8}, `devices.all(a, devices.all(b, a == b || (a@x - b@x) * (a@x - b@x) + (a@y - b@y) * (a@y - b@y) + (a@z - b@z) * (a@z - b@z) > 1))`},
		{"one parity", []int{8}, `devices.map(d, (d@x + d@y + d@z) % 2).distinct().size() == 1`},
		{"one in each line", []int{4}, `devices.map(d, d@x).distinct().size() == 4 && devices.map(d, d@y).distinct().size() == 4 && devices.map(d, d@z).distinct().size() == 4`},
		{"sorted on each axis", []int{4}, `devices.map(d, d@x).sort() == [0, 0, 1, 1] && devices.map(d, d@y).sort() == [0, 1, 2, 3]`},
		{"the same on two axes", []int{6}, `devices.map(d, d@x).sort() == devices.map(d, d@y).sort()`},
		{"the sum of distances", []int{4}, `devices.map(a, devices.map(b, (a@x - b@x) * (a@x - b@x) + (a@y - b@y) * (a@y - b@y) + (a@z - b@z) * (a@z - b@z)).sum()).sum() <= 16`},
		{"the diameter", []int{8}, `devices.map(a, devices.map(b, (a@x - b@x) * (a@x - b@x) + (a@y - b@y) * (a@y - b@y) + (a@z - b@z) * (a@z - b@z)).max()).max() <= 3`},
		{"coordinates in a list", []int{2}, `devices.map(d, d@coords).sort().join(' ') in ['0,0,0 0,0,1', '3,3,2 3,3,3', '1,1,1 2,1,1']`},
		{"middle of the sums", []int{4}, `devices.map(d, d@x + d@y + d@z).sum() == 18`},
		{"a four by two by one, any way", []int{8}, `[[3, 1, 0], [3, 0, 1], [1, 3, 0], [1, 0, 3], [0, 1, 3], [0, 3, 1]].exists(s,
			devices.map(d, d@x).max() - devices.map(d, d@x).min() == s[0] && devices.map(d, d@y).max() - devices.map(d, d@y).min() == s[1] && devices.map(d, d@z).max() - devices.map(d, d@z).min() == s[2])`},
		{"a two by two by two around the end", []int{8}, `lists.range(4).exists(x, lists.range(4).exists(y, lists.range(4).exists(z, devices.all(d, (d@x - x + 4) % 4 < 2 && (d@y - y + 4) % 4 < 2 && (d@z - z + 4) % 4 < 2))))`},
		{"columns equally full", []int{16}, `devices.all(d, devices.filter(o, o@x == d@x && o@y == d@y).size() == 2)`},
		{"each linked to some", []int{6}, `devices.all(a, devices.exists(b, a != b && (a@x - b@x) * (a@x - b@x) + (a@y - b@y) * (a@y - b@y) + (a@z - b@z) * (a@z - b@z) == 1))`},
		{"a square of four, written out", []int{4}, `devices.exists(a, devices.exists(b, devices.exists(c, devices.exists(d, a@x == b@x && a@y == c@y && b@y == d@y && c@x == d@x && a@x + 1 == c@x && a@y + 1 == b@y && a@z == b@z && b@z == c@z && c@z == d@z))))`},
	})
}

func askedOfNeurons() []Expression {
	return neurons.asked([]written{
		{"2x2", []int{4}, `devices.map(d, d@topology_x).max() - devices.map(d, d@topology_x).min() == 1 && devices.map(d, d@topology_y).max() - devices.map(d, d@topology_y).min() == 1`},
		{"2x2 around the end", []int{4}, `devices.all(d, devices.filter(o, ((d@topology_x == o@topology_x && (d@topology_y - o@topology_y + 4) % 4 in [1, 3]) || (d@topology_y == o@topology_y && (d@topology_x - o@topology_x + 4) % 4 in [1, 3]))).size() == 2) && devices.map(d, d@topology_x).distinct().size() == 2 && devices.map(d, d@topology_y).distinct().size() == 2`},
		{"a row", []int{4}, `devices.map(d, d.attributes['resource.aws.com'].devicegroup4_id).distinct().size() == 1`},
		{"pairs", []int{6}, `devices.all(d, devices.filter(o, o.attributes['resource.aws.com'].devicegroup1_id == d.attributes['resource.aws.com'].devicegroup1_id).size() == 2)`},
		{"pairs of different rows", []int{4}, `devices.all(d, devices.filter(o, o.attributes['resource.aws.com'].devicegroup1_id == d.attributes['resource.aws.com'].devicegroup1_id).size() == 2) && devices.map(d, d@topology_x).distinct().size() == 2`},
		{"half", []int{8}, `devices.map(d, d.attributes['resource.aws.com'].devicegroup8_id).distinct().size() == 1`},
		{"consecutive", []int{4}, `devices.map(d, d@deviceId).max() - devices.map(d, d@deviceId).min() == size(devices) - 1`},
		{"consecutive by sorting", []int{4}, `cel.bind(s, devices.map(d, d@deviceId).sort(), s.all(x, x - s[0] < 4))`},
		{"consecutive by sorting and places", []int{4}, `cel.bind(s, devices.map(d, d@deviceId).sort(), [1, 2, 3].all(i, s[i] == s[i - 1] + 1))`},
		{"joined ids", []int{4}, `devices.map(d, string(d@deviceId)).sort().join(',') in ['0,1,2,3', '4,5,6,7', '10,11,8,9', '12,13,14,15']`},
		{"a rectangle", []int{6}, `devices.map(d, d@topology_x).distinct().size() * devices.map(d, d@topology_y).distinct().size() == 6`},
		{"a connected path", []int{4}, `devices.filter(d, devices.exists(o, o@deviceId == d@deviceId + 1)).size() == 3`},
		{"a ring", []int{8}, `devices.all(d, devices.filter(o, (d@topology_x == o@topology_x && (d@topology_y - o@topology_y) * (d@topology_y - o@topology_y) in [1, 9]) || (d@topology_y == o@topology_y && (d@topology_x - o@topology_x) * (d@topology_x - o@topology_x) in [1, 9])).size() >= 2)`},
		{"an exact sum", []int{4}, `devices.map(d, d@deviceId).sum() == 30`},
		{"a mirrored pair", []int{2}, `devices.map(d, d@topology_x).sum() == 3 && devices.map(d, d@topology_y).sum() == 3`},
		{"sorted groups", []int{4}, `devices.map(d, d.attributes['resource.aws.com'].devicegroup4_id).sort() == ['g4-0', 'g4-0', 'g4-1', 'g4-1']`},
		{"the group of the name", []int{2}, `devices.map(d, d.attributes['resource.aws.com'].devicegroup1_id.substring(3)).distinct().size() == 1`},
		{"a group of any size", []int{8}, `devices.map(d, d.attributes['resource.aws.com'].devicegroup1_id).distinct().size() == size(devices) / 2`},
		{"the first is a corner", []int{4}, `devices.exists(c, devices.all(d, d@topology_x - c@topology_x in [0, 1] && d@topology_y - c@topology_y in [0, 1]))`},
		{"an L", []int{3}, `devices.map(d, d@topology_x).distinct().size() == 2 && devices.map(d, d@topology_y).distinct().size() == 2 && devices.map(d, d@topology_x).max() - devices.map(d, d@topology_x).min() == 1 && devices.map(d, d@topology_y).max() - devices.map(d, d@topology_y).min() == 1`},
		{"sums of rows", []int{8}, `[0, 1, 2, 3].all(x, devices.filter(d, d@topology_x == x).map(d, d@topology_y).sum() == 3)`},
		{"different counts of rows", []int{6}, `[0, 1, 2, 3].map(x, devices.filter(d, d@topology_x == x).size()).sort() == [0, 1, 2, 3]`},
	})
}

func askedOfAccelerators() []Expression {
	return accelerators.asked([]written{
		{"one NUMA node", []int{4}, `devices.map(d, d~numaNode).distinct().size() == 1`},
		{"half on each", []int{4}, `devices.filter(d, d~numaNode == 0).size() == devices.filter(d, d~numaNode == 1).size()`},
		{"one profile", []int{2}, `devices.map(d, d@partitionProfile).distinct() == ['spx_nps1']`},
		{"one profile by set", []int{3}, `sets.equivalent(devices.map(d, d@partitionProfile), ['spx_nps1'])`},
		{"compute units", []int{4}, `devices.map(d, d.capacity['gpu.amd.com'].computeUnits.asInteger()).sum() >= 1216`},
		{"compute units of one NUMA node", []int{4}, `devices.filter(d, d~numaNode == 1).map(d, d.capacity['gpu.amd.com'].computeUnits.asInteger()).sum() >= 646`},
		{"memory as quantity", []int{2}, `devices.all(d, d.capacity['gpu.amd.com'].memory.isGreaterThan(quantity('190Gi')))`},
		{"card numbers", []int{4}, `devices.map(d, d@cardIndex / 8).max() - devices.map(d, d@cardIndex / 8).min() == 3`},
		{"card numbers modulo", []int{4}, `devices.all(d, (d@cardIndex - 1) / 8 % 2 == 0)`},
		{"domains by substring", []int{4}, `devices.all(d, int(d~pcieRoot.substring(3, 7)) < 4)`},
		{"domains by replace", []int{4}, `devices.map(d, d~pcieRoot.replace('pci', '').split(':')[0]).sort() == ['0000', '0001', '0002', '0003']`},
		{"domains by regular expression", []int{4}, `devices.all(d, d~pcieRoot.matches('^pci000[0-3]:'))`},
		{"a text for each", []int{2}, `devices.map(d, d@partitionProfile + '/' + string(d~numaNode)).distinct().size() == 1`},
		{"all pairs near", []int{4}, `devices.all(a, devices.all(b, a@index / 4 == b@index / 4))`},
		{"the most of one NUMA node", []int{5}, `[0, 1].map(n, devices.filter(d, d~numaNode == n).size()).max() == 4`},
		{"no NUMA node alone", []int{5}, `[0, 1].all(n, devices.filter(d, d~numaNode == n).size() != 1)`},
		{"exclusive or", []int{2}, `devices.exists(d, d@index == 0) != devices.exists(d, d@index == 1)`},
		{"a conditional", []int{4}, `size(devices) > 4 ? true : devices.map(d, d~numaNode).distinct().size() == 1`},
	})
}

func askedOfRails() []Expression {
	return rails.asked([]written{
		{"one NIC for each GPU at its root", []int{4, 4}, `devices.all(d, devices.filter(o, o~pcieRoot == d~pcieRoot && o.driver != d.driver).size() == devices.filter(o, o~pcieRoot == d~pcieRoot && o.driver == d.driver).size())`},
		{"exactly one partner", []int{4, 4}, `devices.all(d, devices.exists_one(o, o~pcieRoot == d~pcieRoot && o.driver != d.driver))`},
		{"the same roots", []int{4, 4}, `devices.filter(d, d.driver == 'gpu.nvidia.com').map(d, d~pcieRoot).sort() == devices.filter(d, d.driver == 'dra.net').map(d, d~pcieRoot).sort()`},
		{"the same distinct roots", []int{4, 4}, `sets.equivalent(devices.filter(d, d.driver == 'gpu.nvidia.com').map(d, d~pcieRoot), devices.filter(d, d.driver == 'dra.net').map(d, d~pcieRoot))`},
		{"roots of NICs among those of GPUs", []int{4, 4}, `devices.filter(d, d.driver == 'dra.net').all(n, n~pcieRoot in devices.filter(d, d.driver == 'gpu.nvidia.com').map(d, d~pcieRoot))`},
		{"NICs of one NUMA node", []int{2, 4}, `devices.filter(d, d.driver == 'dra.net').map(d, d#numaNode).distinct().size() == 1`},
		{"NICs of one NUMA node, by filter of values", []int{2, 4}, `devices.map(d, d.driver == 'dra.net', d#numaNode).distinct().size() == 1`},
		{"two NICs for each pair of GPUs", []int{4, 4}, `devices.filter(d, d.driver == 'dra.net').map(d, d~pcieRoot).distinct().all(r, devices.filter(d, d.driver == 'gpu.nvidia.com' && d~pcieRoot == r).size() == 2)`},
		{"bandwidth at each root", []int{4, 4}, `devices.filter(d, d.driver == 'gpu.nvidia.com').all(g, devices.filter(n, n.driver == 'dra.net' && n~pcieRoot == g~pcieRoot).map(n, n#speedGbps).sum() >= 400)`},
		{"bandwidth of NICs", []int{2, 4}, `devices.filter(d, d.driver == 'dra.net').map(d, d#speedGbps).sum() == 1000`},
		{"bandwidth by condition", []int{2, 4}, `devices.map(d, d.driver == 'dra.net' ? d#speedGbps : 0).sum() == 1000`},
		{"all with RDMA", []int{2, 4}, `devices.filter(d, d.driver == 'dra.net').all(n, n#rdma)`},
		{"no noise", []int{4, 4}, `devices.all(d, d.driver != 'dra.net' || (d#rdma && d#speedGbps >= 200)) && devices.all(d, devices.exists(o, o.driver != d.driver && o~pcieRoot == d~pcieRoot))`},
		{"rails in a row", []int{1, 4}, `cel.bind(r, devices.filter(d, d.driver == 'dra.net').map(d, d#rail), r.max() - r.min() == 3)`},
		{"different rails", []int{1, 4}, `devices.filter(d, d.driver == 'dra.net').map(d, d#rail).distinct().size() == 4`},
		{"rails by address", []int{1, 2}, `devices.filter(d, d.driver == 'dra.net').map(d, d#ipv4.split('.')[1]).distinct().size() == 2`},
		{"rails by address in a list", []int{1, 4}, `devices.filter(d, d.driver == 'dra.net').all(d, d#ipv4.split('.')[1] in ['0', '1', '2', '3'])`},
		{"sorted rails", []int{1, 4}, `devices.filter(d, d.driver == 'dra.net').map(d, d#rail).sort() == [0, 1, 2, 3]`},
		{"GPUs beside their NICs by number", []int{2, 2}, `devices.filter(d, d.driver == 'gpu.nvidia.com').map(d, d@index / 2).sort() == devices.filter(d, d.driver == 'dra.net').map(d, d#rail).sort()`},
		{"sums of both", []int{3, 3}, `devices.filter(d, d.driver == 'gpu.nvidia.com').map(d, d@index / 2).sum() == devices.filter(d, d.driver == 'dra.net').map(d, d#rail).sum()`},
		{"a map of domains", []int{2, 4}, `devices.all(a, devices.all(b, a.driver == b.driver || {'pci0000:a0': 0, 'pci0000:aa': 0, 'pci0000:b4': 0, 'pci0000:be': 0, 'pci0000:c8': 1, 'pci0000:d2': 1, 'pci0000:dc': 1, 'pci0000:e6': 1}[a.driver == 'gpu.nvidia.com' ? a~pcieRoot : b~pcieRoot] == (a.driver == 'dra.net' ? a#numaNode : b#numaNode)))`},
		{"one NUMA node for both", []int{2, 4}, `devices.map(d, d.driver == 'dra.net' ? d#numaNode : (d~pcieRoot < 'pci0000:c8' ? 0 : 1)).distinct().size() == 1`},
		{"at most two of a root", []int{6, 2}, `devices.filter(d, d.driver == 'gpu.nvidia.com').all(d, devices.filter(o, o~pcieRoot == d~pcieRoot).size() <= 2)`},
		{"GPUs of as many roots as NICs", []int{4, 4}, `devices.filter(d, d.driver == 'gpu.nvidia.com').map(d, d~pcieRoot).distinct().size() == devices.filter(d, d.driver == 'dra.net').map(d, d~pcieRoot).distinct().size()`},
		{"more bandwidth than GPUs need", []int{3, 3}, `devices.filter(d, d.driver == 'dra.net').map(d, d#speedGbps).sum() >= 300 * devices.filter(d, d.driver == 'gpu.nvidia.com').size()`},
		{"the slowest is fast", []int{2, 3}, `devices.filter(d, d.driver == 'dra.net').map(d, d#speedGbps).min() >= 400`},
		{"quantities of NICs", []int{1, 2}, `devices.filter(d, d.driver == 'dra.net').all(n, n.capacity['dra.net'].bandwidth.compareTo(quantity('400G')) == 0)`},
		{"quantities of NICs added", []int{1, 2}, `devices[1].capacity['dra.net'].bandwidth.add(devices[2].capacity['dra.net'].bandwidth).compareTo(quantity('800G')) == 0`},
		{"names of NICs", []int{1, 2}, `devices.filter(d, d.driver == 'dra.net').map(d, d#ifName).sort().join(',') in ['eth0,eth1', 'eth2,eth3', 'eth14,eth15']`},
		{"a NIC near for each, by grouping", []int{4, 2}, `devices.filter(d, d.driver == 'gpu.nvidia.com').all(g, devices.exists(n, n.driver == 'dra.net' && (n#numaNode == 0) == (g~pcieRoot < 'pci0000:c8')))`},
	})
}
