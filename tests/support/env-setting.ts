import type { TestContext } from 'node:test'

/** Sets an environment variable until the test ends. Other tests may share the process. */
export function envSetting(t: TestContext, name: string, value: string): void {
  const before = process.env[name]
  process.env[name] = value
  t.after(() => {
    if (before === undefined) delete process.env[name]
    else process.env[name] = before
  })
}
