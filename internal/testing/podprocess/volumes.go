// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podprocess

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// file is one of a volume.
type file struct {
	content []byte
	mode    int32
}

// write brings the volumes of the pod to a directory, and returns the path of each.
func (p *pod) writeVolumes(ctx context.Context, dir string) (map[string]string, error) {
	paths := map[string]string{}
	for i := range p.spec().Volumes {
		volume := &p.spec().Volumes[i]
		if volume.HostPath != nil {
			path, err := p.hostPath(volume.HostPath)
			if err != nil {
				return nil, fmt.Errorf("volume %s: %w", volume.Name, err)
			}
			paths[volume.Name] = path
			continue
		}
		files, err := p.files(ctx, &volume.VolumeSource)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", volume.Name, err)
		}
		paths[volume.Name] = filepath.Join(dir, volume.Name)
		if err := p.writeFiles(paths[volume.Name], files); err != nil {
			return nil, fmt.Errorf("volume %s: %w", volume.Name, err)
		}
	}
	return paths, nil
}

// hostPath is the folder of the pod's node.
func (p *pod) hostPath(source *corev1.HostPathVolumeSource) (string, error) {
	if kind := ptr.Deref(source.Type, corev1.HostPathUnset); kind != corev1.HostPathDirectoryOrCreate {
		return "", fmt.Errorf("hostPath of type %q: only %s is known", kind, corev1.HostPathDirectoryOrCreate)
	}
	path := filepath.Join(p.runner.nodeDir(p.spec().NodeName), source.Path)
	return path, os.MkdirAll(path, 0o755)
}

// files are those of a volume that has some from the API server.
func (p *pod) files(ctx context.Context, source *corev1.VolumeSource) (map[string]file, error) {
	switch {
	case source.ConfigMap != nil:
		if len(source.ConfigMap.Items) > 0 {
			return nil, fmt.Errorf("items of a ConfigMap are not known outside of projected volumes")
		}
		return p.configMap(ctx, source.ConfigMap.Name, nil, ptr.Deref(source.ConfigMap.DefaultMode, 0o644))
	case source.Secret != nil:
		if len(source.Secret.Items) > 0 {
			return nil, fmt.Errorf("items of a Secret are not known")
		}
		return p.secret(ctx, source.Secret.SecretName, ptr.Deref(source.Secret.DefaultMode, 0o644))
	case source.Projected != nil:
		return p.projected(ctx, source.Projected)
	default:
		return nil, fmt.Errorf("neither a ConfigMap, a Secret, a projected volume nor a hostPath")
	}
}

func (p *pod) configMap(ctx context.Context, name string, items []corev1.KeyToPath, mode int32) (map[string]file, error) {
	object, err := p.runner.client.CoreV1().ConfigMaps(p.object.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if len(object.BinaryData) > 0 {
		return nil, fmt.Errorf("ConfigMap %s: binaryData is not known", name)
	}
	files := map[string]file{}
	if items == nil {
		for key, content := range object.Data {
			files[key] = file{[]byte(content), mode}
		}
	}
	for _, item := range items {
		content, found := object.Data[item.Key]
		if !found {
			return nil, fmt.Errorf("ConfigMap %s has no key %s", name, item.Key)
		}
		files[item.Path] = file{[]byte(content), ptr.Deref(item.Mode, mode)}
	}
	return files, nil
}

func (p *pod) secret(ctx context.Context, name string, mode int32) (map[string]file, error) {
	object, err := p.runner.client.CoreV1().Secrets(p.object.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	files := map[string]file{}
	for key, content := range object.Data {
		files[key] = file{content, mode}
	}
	return files, nil
}

// projected is what the API server adds to pods: how to reach it, and as whom.
func (p *pod) projected(ctx context.Context, source *corev1.ProjectedVolumeSource) (map[string]file, error) {
	mode, files := ptr.Deref(source.DefaultMode, 0o644), map[string]file{}
	for _, one := range source.Sources {
		switch {
		case one.ServiceAccountToken != nil:
			token, err := p.token(ctx, one.ServiceAccountToken)
			if err != nil {
				return nil, err
			}
			files[one.ServiceAccountToken.Path] = file{token, mode}
		case one.ConfigMap != nil:
			more, err := p.configMap(ctx, one.ConfigMap.Name, one.ConfigMap.Items, mode)
			if err != nil {
				return nil, err
			}
			for path, content := range more {
				files[path] = content
			}
		case one.DownwardAPI != nil:
			for _, item := range one.DownwardAPI.Items {
				value, err := p.field(item.FieldRef)
				if err != nil {
					return nil, err
				}
				files[item.Path] = file{[]byte(value), ptr.Deref(item.Mode, mode)}
			}
		default:
			return nil, fmt.Errorf("a source that is neither a token, a ConfigMap nor of the downward API")
		}
	}
	return files, nil
}

// token is that of the pod's ServiceAccount for as long as there is the pod, as the kubelet asks
// for it.
func (p *pod) token(ctx context.Context, source *corev1.ServiceAccountTokenProjection) ([]byte, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.object.Name, UID: p.object.UID},
	}}
	if source.Audience != "" {
		request.Spec.Audiences = []string{source.Audience}
	}
	request, err := p.runner.client.CoreV1().ServiceAccounts(p.object.Namespace).CreateToken(ctx, p.spec().ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return []byte(request.Status.Token), nil
}

// field is what the downward API tells.
func (p *pod) field(source *corev1.ObjectFieldSelector) (string, error) {
	if source == nil {
		return "", fmt.Errorf("of the downward API only fields of the pod are known")
	}
	switch source.FieldPath {
	case "metadata.name":
		return p.object.Name, nil
	case "metadata.namespace":
		return p.object.Namespace, nil
	case "metadata.uid":
		return string(p.object.UID), nil
	case "spec.nodeName":
		return p.spec().NodeName, nil
	case "status.podIP":
		return p.address, nil
	default:
		return "", fmt.Errorf("the field %s of the downward API is not known", source.FieldPath)
	}
}

// writeFiles writes a volume of files, which belong to whom the kubelet gives them: to root, and
// if the pod has an fsGroup to that, which may read them.
func (p *pod) writeFiles(dir string, files map[string]file) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, file := range files {
		path, mode := filepath.Join(dir, name), os.FileMode(file.mode)
		group := p.security().FSGroup
		if group != nil {
			mode |= 0o440
		}
		if err := os.WriteFile(path, file.content, mode); err != nil {
			return err
		}
		if group != nil {
			if err := os.Chown(path, 0, int(*group)); err != nil {
				return err
			}
		}
	}
	return nil
}
