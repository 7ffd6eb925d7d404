// Runs `pennon new-key` as a process, without this process's settings.

import { execFile } from 'node:child_process'

export interface NewKey {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  /** The printed key; '' when none was printed. */
  readonly key: string
}

export function newKey(settings: Readonly<Record<string, string>>, ...options: readonly string[]): Promise<NewKey> {
  return new Promise(resolve => {
    const args = ['--disable-warning=ExperimentalWarning', 'src/main.ts', 'new-key', ...options]
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...settings }
    execFile(process.execPath, args, { env }, (error, stdout, stderr) => {
      const key = /phx_[0-9A-Za-z]{43}\b/.exec(stdout)?.[0] ?? ''
      resolve({ exitCode: error === null ? 0 : Number(error.code), stdout, stderr, key })
    })
  })
}

/** What the private API returns to a key about itself. */
export async function keyItself(url: string, key: string): Promise<{ label: string; scopes: string[] }> {
  const response = await fetch(`${url}/api/personal_api_keys/@current/`, {
    headers: { authorization: `Bearer ${key}` },
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as { label: string; scopes: string[] }
}
