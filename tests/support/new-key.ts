// Runs `pennon new-key` as a process, without this process's settings.

import { type Ended, runCommand } from './pennon-command.ts'

/** `key`: the printed key; '' when none was printed. */
export async function newKey(
  settings: Readonly<Record<string, string>>,
  ...options: readonly string[]
): Promise<Ended & { readonly key: string }> {
  const ended = await runCommand(settings, 'new-key', ...options)
  return { ...ended, key: /phx_[0-9A-Za-z]{43}\b/.exec(ended.stdout)?.[0] ?? '' }
}

/** What the private API tells a key about itself. */
export async function keyItself(url: string, key: string): Promise<{ label: string; scopes: string[] }> {
  const response = await fetch(`${url}/api/personal_api_keys/@current/`, {
    headers: { authorization: `Bearer ${key}` },
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as { label: string; scopes: string[] }
}
