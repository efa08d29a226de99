// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

func gpus() []Expression {
	return server.of([]written{
		{"same model", []int{3}, `devices.map(d, d.attributes['gpu.nvidia.com'].productName).distinct().size() == 1`},
		{"same NUMA node", []int{3}, `devices.all(a, devices.all(b, a.attributes['resource.kubernetes.io'].numaNode == b.attributes['resource.kubernetes.io'].numaNode))`},
		{"some NUMA node in common, a number or a list", []int{3}, `lists.range(8).exists(node, devices.all(d, d.attributes['resource.kubernetes.io'].numaNode.includes(node)))`},
		{"half on each NUMA node", []int{4}, `devices.map(d, d.attributes['resource.kubernetes.io'].numaNode).sum() * 2 == devices.size()`},
		{"distinct roots", []int{3}, `devices.all(a, devices.all(b, a == b || a.attributes['resource.kubernetes.io'].pcieRoot != b.attributes['resource.kubernetes.io'].pcieRoot))`},
		{"at most one per switch", []int{3}, `devices.all(d, devices.filter(o, o.attributes['gpu.nvidia.com'].switch == d.attributes['gpu.nvidia.com'].switch).size() <= 1)`},
		{"at least 280Gi together", []int{4}, `devices.map(d, d.capacity['gpu.nvidia.com'].memory.asInteger()).sum() >= 280 * 1073741824`},
		{"memory over 40Gi each", []int{3}, `devices.all(d, d.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('40Gi')))`},
		{"one large, the rest at least as large as the smallest", []int{2}, `devices.exists(d, d.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) == 0) &&
			devices.exists_one(d, d.capacity['gpu.nvidia.com'].memory.isLessThan(quantity('80Gi')))`},
		{"compute capability", []int{3}, `devices.all(d, d.attributes['gpu.nvidia.com'].cudaComputeCapability.compareTo(semver('9.0.0')) >= 0)`},
		{"equal versions", []int{3}, `devices.all(d, d.attributes['gpu.nvidia.com'].driverVersion == devices[0].attributes['gpu.nvidia.com'].driverVersion) &&
			devices.all(d, d.attributes['gpu.nvidia.com'].cudaComputeCapability == devices[0].attributes['gpu.nvidia.com'].cudaComputeCapability)`},
		{"healthy and of one architecture", []int{3}, `devices.all(d, d.attributes['gpu.nvidia.com'].healthy) &&
			devices.exists(d, d.attributes['gpu.nvidia.com'].architecture == 'Ampere') == devices.all(d, d.attributes['gpu.nvidia.com'].architecture == 'Ampere')`},
		{"by name", []int{2}, `devices.all(d, d.attributes['gpu.nvidia.com'].productName.lowerAscii().contains('h100')) &&
			devices.all(d, d.attributes['gpu.nvidia.com'].productName.matches('^NVIDIA (H|B)[0-9]+ .*'))`},
		{"guarded", []int{3}, `devices.filter(d, has(d.attributes['gpu.nvidia.com'].healthy) && !d.attributes['gpu.nvidia.com'].healthy).size() == 0 &&
			devices.all(d, d.attributes['gpu.nvidia.com'].?reserved.orValue(false) == false)`},
		{"own domain", []int{2}, `devices.all(d, d.attributes[d.driver].index % 2 == 0)`},
		{"grouped by switch", []int{4}, `devices.map(d, d.attributes['gpu.nvidia.com'].switch).distinct().all(s,
			devices.filter(d, d.attributes['gpu.nvidia.com'].switch == s).size() == 2)`},
		{"the same switches for both requests", []int{2, 2}, `devices.map(d, d.attributes['gpu.nvidia.com'].switch).distinct().size() <= 2 && devices.all(d, d.driver == 'gpu.nvidia.com')`},
	})
}

func partitions() []Expression {
	return partitioned.of([]written{
		{"of one GPU", []int{2}, `devices.map(d, d.attributes['mig.example.com'].parentUUID).distinct().size() == 1`},
		{"of different GPUs", []int{2}, `!devices.exists(a, devices.exists(b, a != b && a.attributes['mig.example.com'].parentUUID == b.attributes['mig.example.com'].parentUUID))`},
		{"at most two of a GPU", []int{3}, `devices.all(d, devices.filter(o, o.attributes['mig.example.com'].parentIndex == d.attributes['mig.example.com'].parentIndex).size() <= 2)`},
		{"the same profiles", []int{2}, `devices.map(d, d.attributes['mig.example.com'].profile).min() == devices.map(d, d.attributes['mig.example.com'].profile).max()`},
		{"one large and two small", []int{3}, `devices.exists_one(d, d.attributes['mig.example.com'].profile.startsWith('3g.')) &&
			devices.filter(d, d.attributes['mig.example.com'].profile.startsWith('1g.')).size() == 2`},
		{"at least 60Gi", []int{3}, `devices.map(d, d.capacity['mig.example.com'].memory.asInteger() / 1073741824).sum() >= 60`},
		{"slices add up", []int{3}, `devices.map(d, d.capacity['mig.example.com'].slices.asInteger()).sum() == 4`},
		{"memory by name", []int{2}, `devices.map(d, int(d.attributes['mig.example.com'].profile.split('.')[1].replace('gb', ''))).sum() in [20, 60]`},
	})
}

func chips() []Expression {
	return pod.of([]written{
		{"a plane", []int{4}, `['x', 'y', 'z'].exists(axis, devices.all(d, d.attributes['tpu.example.com'][axis] == devices[0].attributes['tpu.example.com'][axis]))`},
		{"a line by text", []int{2}, `devices.all(a, devices.all(b, a == b ||
			[0, 1, 2].filter(i, a.attributes['tpu.example.com'].coords.split(',')[i] != b.attributes['tpu.example.com'].coords.split(',')[i]).size() == 1))`},
		{"links", []int{4}, `devices.all(a, devices.filter(b, a != b &&
			(a.attributes['tpu.example.com'].x - b.attributes['tpu.example.com'].x) * (a.attributes['tpu.example.com'].x - b.attributes['tpu.example.com'].x) +
			(a.attributes['tpu.example.com'].y - b.attributes['tpu.example.com'].y) * (a.attributes['tpu.example.com'].y - b.attributes['tpu.example.com'].y) +
			(a.attributes['tpu.example.com'].z - b.attributes['tpu.example.com'].z) * (a.attributes['tpu.example.com'].z - b.attributes['tpu.example.com'].z) == 1).size() == 2)`},
		{"one generation", []int{4}, `devices.map(d, d.attributes['tpu.example.com'].tpuGen).distinct() == ['v5e']`},
		{"one tray", []int{3}, `devices.map(d, d.attributes['tpu.example.com'].tray.split('/')[0]).distinct().size() == 1`},
		{"the same slots of both trays", []int{4}, `devices.all(d, devices.filter(o,
			o.attributes['tpu.example.com'].tray.endsWith(d.attributes['tpu.example.com'].tray.substring(6))).size() == 2)`},
		{"without a corner", []int{3}, `!devices.exists(d, d.attributes['tpu.example.com'].coords in ['0,0,0', '1,1,1'])`},
	})
}

func interfaces() []Expression {
	return host.of([]written{
		{"all with RDMA", []int{3}, `devices.all(d, d.attributes['dra.net'].rdma)`},
		{"different physical functions", []int{3}, `devices.map(d, d.attributes['dra.net'].pfName).distinct().size() == size(devices)`},
		{"bandwidth", []int{3}, `devices.map(d, d.attributes['dra.net'].speedMbps).sum() >= 400000`},
		{"bandwidth as a quantity", []int{2}, `devices[0].capacity['dra.net'].bandwidth.add(devices[1].capacity['dra.net'].bandwidth).compareTo(quantity('125G')) >= 0`},
		{"none is much slower", []int{3}, `devices.map(d, d.attributes['dra.net'].speedMbps).max() <= 2 * devices.map(d, d.attributes['dra.net'].speedMbps).min()`},
		{"one MTU", []int{4}, `cel.bind(first, devices[0].attributes['dra.net'].mtu, devices.all(d, d.attributes['dra.net'].mtu == first))`},
		{"a common rail", []int{2}, `devices[0].attributes['dra.net'].rails.exists(r, devices.all(d, r in d.attributes['dra.net'].rails))`},
		{"all rails", []int{3}, `[0, 1, 2, 3].all(r, devices.exists(d, r in d.attributes['dra.net'].rails))`},
		{"no rail twice", []int{2}, `devices.all(i, a, devices.all(j, b, i >= j || !sets.intersects(a.attributes['dra.net'].rails, b.attributes['dra.net'].rails)))`},
		{"firmware not too far apart", []int{3}, `devices.map(d, d.attributes['dra.net'].firmware.minor()).max() - devices.map(d, d.attributes['dra.net'].firmware.minor()).min() <= 1`},
		{"firmware of at least", []int{3}, `devices.filter(d, d.attributes['dra.net'].firmware.isLessThan(semver('22.31.0'))).size() <= 1`},
	})
}

func cores() []Expression {
	return sockets.of([]written{
		{"one socket", []int{4}, `devices.all(d, d.attributes['cpu.example.com'].socketID == devices[0].attributes['cpu.example.com'].socketID)`},
		{"one NUMA node and one kind", []int{2}, `devices.map(d, d.attributes['cpu.example.com'].numaNodeID).distinct().size() == 1 &&
			devices.map(d, d.attributes['cpu.example.com'].coreType).distinct().size() == 1`},
		{"whole caches", []int{4}, `devices.all(d, devices.filter(o, o.attributes['cpu.example.com'].cacheID == d.attributes['cpu.example.com'].cacheID).size() == 2)`},
		{"with siblings", []int{2}, `devices.all(d, d.attributes['cpu.example.com'].siblings.all(s, devices.exists(o, o.attributes['cpu.example.com'].id == s)))`},
		{"without siblings", []int{3}, `devices.all(d, !sets.intersects(d.attributes['cpu.example.com'].siblings, devices.map(o, o.attributes['cpu.example.com'].id)))`},
		{"as few NUMA nodes as can be", []int{4}, `devices.map(d, d.attributes['cpu.example.com'].numaNodeID).distinct().size() == (devices.size() + 2) / 3`},
		{"more fast than slow", []int{4}, `devices.filter(d, d.attributes['cpu.example.com'].coreType == 'p-core').size() >
			devices.filter(d, d.attributes['cpu.example.com'].coreType == 'e-core').size()`},
		{"the last is on another socket", []int{3}, `devices[devices.size() - 1].attributes['cpu.example.com'].socketID != devices[0].attributes['cpu.example.com'].socketID`},
		{"spread evenly", []int{3}, `[0, 1, 2].all(n, devices.exists_one(d, d.attributes['cpu.example.com'].numaNodeID == n))`},
		{"two requests on different sockets", []int{2, 2}, `devices.slice(0, 2).all(a, devices.slice(2, 4).all(b,
			a.attributes['cpu.example.com'].socketID != b.attributes['cpu.example.com'].socketID))`},
	})
}
