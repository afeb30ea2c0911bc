import { execFileSync } from 'node:child_process';

import { describe, expect, it } from 'vitest';

import { IConnect } from '../../../console/data/client';
import {
  addressOf,
  aliasOf,
  directOf,
  gatewayLink,
  IAddress,
  keyFile,
  knownHost,
  protectKey,
  sftpLink,
  sshConfig,
  sshLine,
  vsCodeLink
} from '../../../console/access/guides';

const connect: IConnect = {
  user: 'alice',
  job: 'train',
  task: 'worker-0',
  login: 'alice+train+worker-0',
  gateway: { host: null, port: 2222, hostKey: 'ssh-ed25519 AAAA' },
  published: { host: '10.0.0.7', port: 31000 },
  off: null,
  workDir: '/home/my project',
  python: '/opt/conda/bin/python3',
  ports: [],
  isolated: true
};
const address = addressOf(connect, 'hub.example.org')!;

describe('the address of a task', () => {
  it('is the gateway’s, at the host of the browser where it has no name of its own', () => {
    expect(address).toMatchObject({ host: 'hub.example.org', port: 2222, user: 'alice+train+worker-0' });
    const named = { ...connect, gateway: { ...connect.gateway!, host: 'ssh.example.org' } };
    expect(addressOf(named, 'hub.example.org')!.host).toBe('ssh.example.org');
  });

  it('is the task’s own where there is no gateway, or none', () => {
    const direct = { host: '10.0.0.7', port: 31000, user: 'root', hostKey: null };
    expect(addressOf({ ...connect, gateway: null }, 'x')).toEqual(direct);
    expect(directOf(connect)).toEqual(direct);
    expect(addressOf({ ...connect, gateway: null, published: null }, 'x')).toBeNull();
  });
});

describe('a command line', () => {
  it('logs in with a key, or without', () => {
    expect(sshLine(address, '~/.ssh/alice~train')).toBe(
      'ssh -i ~/.ssh/alice~train -p 2222 alice+train+worker-0@hub.example.org'
    );
    expect(sshLine(address, null)).toBe('ssh -p 2222 alice+train+worker-0@hub.example.org');
  });

  it.each(["o'brien $(touch /tmp/x)", '王 小/明', '`id`;rm -rf', 'a"b\\c'])('takes %s as one word', user => {
    const hostile: IAddress = { ...address, user };
    const line = sshLine(hostile, `~/.ssh/${keyFile({ user, job: 'x' })}`).replace(/^ssh/, 'printf "%s\\n"');
    const words = execFileSync('sh', ['-c', line], { encoding: 'utf8', env: { HOME: '/home/me' } }).split('\n');
    expect(words.slice(0, 5)).toEqual([
      '-i',
      expect.stringMatching(/^\/home\/me\/\.ssh\/[^\s'"/]*~x$/),
      '-p',
      '2222',
      `${user}@hub.example.org`
    ]);
  });

  it('protects the key on each system', () => {
    const { unix, windows } = protectKey('alice~train');
    expect(unix).toContain('chmod 600 ~/.ssh/alice~train');
    expect(windows.startsWith('md "%USERPROFILE%\\.ssh" 2>nul & move ')).toBe(true);
    expect(windows).toContain('icacls "%USERPROFILE%\\.ssh\\alice~train" /inheritance:r');
  });
});

describe('the configuration of ssh', () => {
  it('has the names that pai ssh-config writes', () => {
    expect(aliasOf(connect)).toBe('pai-train-worker-0');
    // as `_word` of pai_scheduler/client/ssh/openssh_config.py has it
    expect(aliasOf({ job: 'a~b', task: 'worker-0' })).toBe('pai-a-b-9415-worker-0');
  });

  it('has every value in quotes, and none that would end them', () => {
    const block = sshConfig({ ...address, user: '王 小+x' }, 'pai-x', '~/.ssh/k')!;
    expect(block).toContain('  User "王 小+x"\n');
    expect(block).toMatch(/^Host pai-x\n {2}HostName hub\.example\.org\n {2}Port 2222\n/);
    for (const user of ['a"b', 'a\\b', 'a%h', 'a$b', 'a`b', 'a\nProxyCommand x']) {
      expect(sshConfig({ ...address, user }, 'pai-x', '~/.ssh/k'), user).toBeNull();
    }
  });

  it('knows the server', () => {
    expect(knownHost(address)).toBe('[hub.example.org]:2222 ssh-ed25519 AAAA');
    expect(knownHost({ ...address, port: 22 })).toBe('hub.example.org ssh-ed25519 AAAA');
    expect(knownHost(directOf(connect)!)).toBeNull();
  });
});

describe('a link', () => {
  it('opens a folder in VS Code', () => {
    expect(vsCodeLink('pai-x', '/home/my project/')).toBe('vscode://vscode-remote/ssh-remote+pai-x/home/my%20project');
  });

  it('fills in JetBrains Gateway', () => {
    expect(gatewayLink(address, '/home/my project')).toBe(
      'jetbrains-gateway://connect#host=hub.example.org&port=2222&user=alice%2Btrain%2Bworker-0' +
        '&projectPath=%2Fhome%2Fmy%20project&type=ssh&deploy=false'
    );
  });

  it('opens a folder over SFTP, whatever the user is called', () => {
    expect(sftpLink({ ...address, user: 'a@b+x:y' }, '/')).toBe('sftp://a%40b%2Bx%3Ay@hub.example.org:2222/');
    expect(sftpLink({ ...address, host: '::1' }, '/w')).toBe('sftp://alice%2Btrain%2Bworker-0@[::1]:2222/w/');
  });
});
