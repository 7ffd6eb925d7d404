import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { startPennonFor } from '../support/pennon.ts'
import { callCommand, runCommand } from '../support/pennon-command.ts'
import { aPassword, callFromPage, callsTo, readToken, signIn, toPerson } from '../support/people.ts'
import { tempDir } from '../support/temp-dir.ts'

const linkIn = (stdout: string) => /Sign in {2}(\S+)/.exec(stdout)?.[1] ?? ''

describe('pennon sign-in-link', () => {
  it('signs in a new admin next to a running instance, and one who forgot the password', async t => {
    const dataFolder = join(tempDir(t), 'data')
    const running = await startPennonFor(t, { dataFolder, waitForProcessing: false })
    const api = callsTo(running.url)
    const settings = { PENNON_DATA: dataFolder, PORT: String(running.port) }
    const first = await runCommand(settings, 'sign-in-link', '--email', 'Ada@x.example', '--name', 'Ada')
    assert.equal(first.exitCode, 0, first.stderr)
    assert.ok(linkIn(first.stdout).startsWith(`${running.url}/ui/welcome#`), first.stdout)
    const spend = (link: string, given: object = {}) =>
      callFromPage(api, 'POST', '/api/session/link/', { body: { token: readToken(link), ...given } })
    const signedIn = await spend(linkIn(first.stdout), { password: aPassword })
    assert.deepEqual(
      [signedIn.status, signedIn.body.user.name, signedIn.body.user.email, signedIn.body.role],
      [200, 'Ada', 'ada@x.example', 'admin'],
    )
    assert.equal((await signIn(api, 'ada@x.example')).status, 200)
    const again = await callCommand(settings, 'sign-in-link', '--email', 'ada@x.example')
    assert.equal((await spend(linkIn(again.stdout))).body.user.id, signedIn.body.user.id)
    const eve = await callCommand(settings, 'sign-in-link', '--email', 'eve@x.example', '--role', 'viewer')
    assert.equal((await spend(linkIn(eve.stdout))).body.role, 'viewer')
    const risen = await callCommand(settings, 'sign-in-link', '--email', 'eve@x.example', '--role', 'admin')
    assert.equal((await spend(linkIn(risen.stdout))).body.role, 'admin')
    const log = await toPerson(api, signedIn).call('GET', '/api/activity_log/?scopes=User')
    assert.match(log.text, /"first_name":"pennon sign-in-link"/)
    assert.equal(await running.stop(), 0)
    const stopped = await callCommand({ ...settings, PENNON_PUBLIC_URL: 'https://pennon.example' }, 'sign-in-link')
    assert.ok(linkIn(stopped.stdout).startsWith('https://pennon.example/ui/welcome#'), stopped.stdout)
  })

  it('refuses what cannot work, with one line', async t => {
    const settings = { PENNON_DATA: join(tempDir(t), 'none') }
    for (const [more, options, reason] of [
      [{}, [], /no state in the data folder/],
      [{}, ['--email', 'ada'], /"ada" is not an e-mail address/],
      [{}, ['--role', 'owner'], /viewer, editor, admin/],
      [{ PENNON_PUBLIC_URL: 'https://shop.example/flags' }, [], /only at the root of a host/],
    ] as const) {
      const { exitCode, stdout, stderr } = await callCommand({ ...settings, ...more }, 'sign-in-link', ...options)
      assert.deepEqual([exitCode, stdout], [2, ''], stderr)
      assert.match(stderr, reason)
    }
  })
})
