// @vitest-environment node

import { describe, expect, it } from 'vitest';

import { decode, encode, FormatError, modelOf } from '../../lab/storageDrive';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('contents', () => {
  it('are text where they are text, and base64 where they are not', () => {
    expect(decode(bytes('你好'), 'file', undefined)).toEqual({ format: 'text', content: '你好' });
    expect(decode(new Uint8Array([255, 0]), 'file', undefined)).toEqual({ format: 'base64', content: '/wA=' });
    expect(decode(bytes('a'), 'file', 'base64')).toEqual({ format: 'base64', content: 'YQ==' });
    expect(() => decode(new Uint8Array([255]), 'file', 'text')).toThrow(FormatError);
  });

  it('of a large file are encoded too', () => {
    const large = new Uint8Array(3_000_000).fill(65);
    expect(atob(decode(large, 'file', 'base64').content as string)).toBe('A'.repeat(3_000_000));
  });

  it('keep a mark at their beginning', async () => {
    const { content } = decode(bytes('\uFEFFa'), 'file', 'text');
    expect(content).toBe('\uFEFFa');
    expect(await encode({ type: 'file', format: 'text', content }).text()).toBe('a'); // Blob.text drops it
    expect(encode({ type: 'file', format: 'text', content }).size).toBe(4);
  });

  it('of a notebook are written as Jupyter does, and of a new one are empty', async () => {
    const { format, content } = decode(bytes('{"cells": [], "nbformat": 4}'), 'notebook', undefined);
    expect([format, content]).toEqual(['json', { cells: [], nbformat: 4 }]);
    expect(await encode({ type: 'notebook', format: 'json', content }).text()).toBe(
      '{\n "cells": [],\n "nbformat": 4\n}\n'
    );
    expect(decode(new Uint8Array(), 'notebook', undefined).content).toMatchObject({ cells: [], nbformat: 4 });
  });

  it('that are base64 are written as what they stand for', async () => {
    const blob = encode({ type: 'file', format: 'base64', content: '/wA=' });
    expect(new Uint8Array(await blob.arrayBuffer())).toEqual(new Uint8Array([255, 0]));
  });
});

describe('a model', () => {
  it('tells what there is', () => {
    const file = { path: '/alice/a.ipynb', isFolder: false, length: 7, modified: 1_700_000_000_123 };
    expect(modelOf(file)).toMatchObject({
      name: 'a.ipynb',
      path: 'alice/a.ipynb',
      type: 'notebook',
      size: 7,
      last_modified: '2023-11-14T22:13:20.123Z'
    });
    expect(modelOf({ ...file, path: '/alice', isFolder: true })).not.toHaveProperty('size');
  });
});
