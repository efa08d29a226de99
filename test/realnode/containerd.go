// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/celset/celset/test/controlplane"
)

// loopbackNetwork is the CNI configuration. The kubelet needs one to become Ready; pods use the network of the host.
const loopbackNetwork = `{"cniVersion": "1.0.0", "name": "loopback", "plugins": [{"type": "loopback"}]}
`

//go:embed containerd.toml.tmpl
var containerdConfig string

// startContainerd starts containerd, and waits until it has loaded all plugins and answers requests.
func (n *Node) startContainerd(ctx context.Context) error {
	if err := os.WriteFile(n.path("cni", "10-loopback.conflist"), []byte(loopbackNetwork), 0o600); err != nil {
		return err
	}
	config := n.path("containerd.toml")
	err := writeConfig(config, containerdConfig, map[string]any{
		"Root": n.path("containerd"), "State": n.path("run"), "Opt": n.path("opt"), "Socket": n.socket(),
		"CDIDir": n.CDIDir(), "CNIDir": n.path("cni"), "Image": Image,
		"Bin":              filepath.Dir(n.cp.Binary(controlplane.CNILoopback)),
		"Shim":             n.cp.Binary(controlplane.ContainerdShim),
		"OCIRuntime":       n.cp.Binary(controlplane.OCIRuntime),
		"RuncRoot":         n.path("runc"),
		"RestrictOOMScore": !mayRaiseOOMPriority(),
	})
	if err != nil {
		return err
	}
	_, err = n.cp.StartProgram(ctx, controlplane.Program{
		Name:   n.processName(controlplane.Containerd),
		Binary: controlplane.Containerd,
		Args:   []string{"--config=" + config},
		Ready: func(ctx context.Context, _ *controlplane.Process) error {
			var dialer net.Dialer
			connection, err := dialer.DialContext(ctx, "unix", n.socket())
			if err != nil {
				return err
			}
			return connection.Close()
		},
		Grace:  5 * time.Second,
		Beside: n.init,
	})
	return err
}

// importImage imports [Image] into containerd.
func (n *Node) importImage(ctx context.Context) error {
	archive := n.path("image.tar")
	if err := writeImage(archive, n.cp.Binary(controlplane.Workload)); err != nil {
		return err
	}
	return n.ImportImages(ctx, archive)
}

// ImportImages imports the images in an archive into containerd, instead of pulling them. The archive is in the format of
// "docker save", or an OCI layout. The images keep the names in the archive.
func (n *Node) ImportImages(ctx context.Context, archive string) error {
	return n.changeImages(ctx, "import", archive)
}

// TagImage adds another name to an image of the node.
func (n *Node) TagImage(ctx context.Context, image, name string) error {
	return n.changeImages(ctx, "tag", image, name)
}

func (n *Node) changeImages(ctx context.Context, args ...string) error {
	// The kubelet uses the images in containerd's namespace k8s.io.
	args = append([]string{"--address=" + n.socket(), "--namespace=k8s.io", "images"}, args...)
	if out, err := exec.CommandContext(ctx, n.cp.Binary(controlplane.Ctr), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// writeConfig fills in the template text with the values, and writes the result to path. It quotes strings as in Go, which TOML
// and YAML accept, too.
func writeConfig(path, text string, values map[string]any) error {
	quoted := make(map[string]any, len(values))
	for name, value := range values {
		if text, ok := value.(string); ok {
			value = fmt.Sprintf("%q", text)
		}
		quoted[name] = value
	}
	var out bytes.Buffer
	parsed, err := template.New(filepath.Base(path)).Option("missingkey=error").Parse(text)
	if err != nil {
		return err
	}
	return errors.Join(parsed.Execute(&out, quoted), os.WriteFile(path, out.Bytes(), 0o600))
}

// mayRaiseOOMPriority reports whether this process may lower the oom_score_adj of its children below its own. On some machines
// even root may not, because the capability CAP_SYS_RESOURCE is missing.
func mayRaiseOOMPriority() bool {
	const file = "/proc/self/oom_score_adj"
	before, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	err = os.WriteFile(file, []byte("-999"), 0)
	return errors.Join(err, os.WriteFile(file, bytes.TrimSpace(before), 0)) == nil
}
