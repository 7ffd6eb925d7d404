// The questions that planning asks its target, and the messages when the target refuses.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { JobFolder } from '#importer/job/job-folder.ts'
import { type ImportPlan, readPlan } from '#importer/job/plan.ts'
import { notFound } from '#wire/wire-error.ts'
import { ImportCommands } from '../support/import-command.ts'
import { serveAnswers } from '../support/local-server.ts'
import { mustSucceed, refusalOf } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const record = `${JSON.stringify({ id: 'r', event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' })}\n`
const project = { id: 7, name: 'Shop', api_token: 'phc_shop' }
const other = { id: 3, name: 'Other', api_token: 'phc_other' }
const refusedAnswer = { status: 403, detail: 'The key lacks the scope.' }

describe('the target of a planned import', () => {
  it('the private API may have another address, given with --api-host', async t => {
    const host = await serveAnswers(t, { '/array/phc_shop/config': {} })
    const apiHost = await serveAnswers(t, {
      '/api/projects/': { results: [other, project], next: null },
      '/api/projects/7/import_jobs/': { results: [] },
      '/api/projects/7/query/': { results: [] },
      '/api/projects/7/persons/': { results: [] },
    })
    const { commands, plan } = planning(t)
    const { stdout } = mustSucceed(await plan('--host', host, '--api-host', apiHost))
    assert.match(stdout, /^Target: Shop on http.*\nNothing was sent\.$/m)
    const { target } = planOf(commands)
    assert.deepEqual(target, {
      ...{ address: host, apiAddress: apiHost, projectKey: 'phc_shop' },
      ...{ projectId: '7', projectName: 'Shop' },
    })
    const { stdout: note } = await plan('--host', host)
    assert.match(note, /The project could not be queried: .*--api-host\./)
  })

  it('a rehearsal project must be neither the target nor a project with events of its own', async t => {
    const trying = { id: 9, name: 'Trying', api_token: 'phc_trying' }
    const answers: Record<string, object> = {
      '/array/phc_shop/config': {},
      '/api/projects/': { results: [project, trying], next: null },
      '/api/projects/9/query/': { results: [['live']] },
    }
    const { commands, plan } = planning(t)
    await plan('--host', await serveAnswers(t, answers))
    const rehearse = (...options: string[]) => commands.call('run', '--rehearsal-project', ...options)
    for (const [key, complaint] of [
      ['phc_shop', /--rehearsal-project is the target itself/],
      ['phc_unknown', /has no access to a project with the key phc_unknown/],
      ['phc_trying', /^pennon: the project Trying has events that do not come from a rehearsal, .*Create a project/],
      ['phx_abcdefghijklmnop', /^pennon: that is a personal API key, a secret: set it in PENNON_PERSONAL_KEY/],
    ] as const) {
      const { exitCode, stderr } = await rehearse(key)
      assert.match(stderr, complaint)
      assert.equal(exitCode, 2)
    }
    answers['/api/projects/9/query/'] = refusedAnswer
    assert.match((await rehearse('phc_trying')).stderr, /phc_trying cannot be checked: .*lacks the scope/)
    assert.deepEqual(
      readdirSync(commands.job).filter(name => !name.startsWith('lock.db')),
      ['plan.json', 'state.db'],
    )
  })

  it('an address that accepts no events, such as the port of the private API, is refused', async t => {
    const host = await serveAnswers(t, { '/array/phc_shop/config': { status: 404, detail: notFound.detail } })
    const stderr = refusalOf(await planning(t).plan('--host', host))
    assert.match(
      stderr,
      /^pennon: http\S+ does not accept events: .*not to the port of PENNON_ADMIN_PORT.*Nothing was sent$/m,
    )
  })

  it('a secret or an empty key in place of the public key is refused before any request', async t => {
    const host = await serveAnswers(t, {})
    const { plan } = planning(t)
    const secret = await plan('--host', host, '--project-key', 'phx_abcdefghijklmnopqrstuvwxyz')
    assert.equal(secret.exitCode, 2)
    assert.match(secret.stderr, /is a personal API key, a secret: set it in PENNON_PERSONAL_KEY\. .*Nothing was sent$/m)
    assert.doesNotMatch(secret.stderr + secret.stdout, /abcdef/)
    assert.match((await plan('--project-key', '')).stderr, /--project-key is empty\. /)
    const empty = new ImportCommands(tempDir(t), { PENNON_PROJECT_KEY: '' })
    mustSucceed(await empty.plan([empty.file('raw.jsonl', record)]))
    const { target } = planOf(empty)
    assert.equal(target, null)
  })

  it('the scopes that the personal key lacks are listed', async t => {
    const host = await serveAnswers(t, {
      '/array/phc_shop/config': {},
      '/api/projects/': { results: [project], next: null },
      '/api/projects/7/import_jobs/': refusedAnswer,
      '/api/projects/7/query/': { results: [] },
      '/api/projects/7/persons/': refusedAnswer,
    })
    const { stdout } = await planning(t).plan('--host', host)
    const missingRights = stdout.match(/^PENNON_PERSONAL_KEY may not read .*$/gm)
    assert.deepEqual(
      missingRights?.map(line => /read ([a-z ]+),/.exec(line)![1]),
      ['import jobs', 'persons'],
    )
  })

  it('all scopes that the personal key lacks are listed at once, with advice to make another key', async t => {
    const answers = { '/array/phc_shop/config': {}, '/api/projects/': refusedAnswer }
    const keyWith = (...scopes: string[]) => ({ ...answers, '/api/personal_api_keys/@current/': { scopes } })
    const none = await planning(t).plan('--host', await serveAnswers(t, keyWith()))
    assert.match(
      none.stdout,
      /^PENNON_PERSONAL_KEY lacks the scopes import_job:write, project:read, query:read and person:read, .*: create a new key/m,
    )
    assert.doesNotMatch(none.stdout, /could not be queried/)
    const some = await planning(t).plan('--host', await serveAnswers(t, keyWith('import_job:read', 'query:write')))
    assert.match(some.stdout, /lacks the scopes import_job:write, project:read and person:read, /)
    const all = { ...keyWith('*'), '/api/projects/': { results: [project], next: null } }
    const { stdout } = await planning(t).plan('--host', await serveAnswers(t, all))
    assert.doesNotMatch(stdout, /lacks/)
  })

  it('the project is looked up once there is a personal key, and then becomes part of what is approved', async t => {
    const { answers, withoutKey, commands, planned } = await rehearsedWithoutKey(t)
    assert.match(planned, /^PENNON_PERSONAL_KEY is not set\. .*person:read \(create one with pennon new-key/m)
    answers['/api/projects/'] = { results: [other, project], next: null }
    const before = await withoutKey.yes()
    const refused = await commands.call('run', ...before)
    assert.match(refused.stderr, /^pennon: --yes \w+ is for other files, options, limits or another target than /)
    assert.notDeepEqual(await commands.yes(), before)
    assert.match((await commands.call('run', ...(await commands.yes()))).stdout, /^Approved as /m)
    const { target } = planOf(commands)
    assert.deepEqual([target?.projectId, target?.projectName], ['7', 'Shop'])
  })

  it('a personal key for another project, given after the approval, is refused until the job is rehearsed again', async t => {
    const { answers, withoutKey, commands } = await rehearsedWithoutKey(t)
    answers['/api/projects/%40current/'] = other
    withoutKey.approve()
    const refused = await commands.call('run')
    assert.equal(refused.exitCode, 2)
    assert.match(refused.stderr + refused.stdout, /key's project, Other, has another key\..*run \S+ --rehearse-again/)
    answers['/api/projects/'] = { results: [other, project], next: null }
    mustSucceed(await commands.call('run', '--rehearse-again'))
    assert.equal(planOf(commands).target?.projectId, '7')
  })

  it('another rehearsal is required if only the personal key reveals that the project has no persons', async t => {
    const { answers, commands } = await rehearsedWithoutKey(t)
    answers['/api/projects/'] = { results: [{ ...project, person_processing_opt_out: true }], next: null }
    const refused = refusalOf(await commands.call('run'))
    assert.match(refused, /does not process persons .*To rehearse it again: pennon import run/)
    mustSucceed(await commands.call('run'))
    assert.match((await commands.call('run', ...(await commands.yes()))).stdout, /^Approved as /m)
  })

  it('planning says when the project has no persons, since more records are rejected then', async t => {
    const host = await serveAnswers(t, {
      '/array/phc_shop/config': {},
      '/api/projects/': { results: [{ ...project, person_processing_opt_out: true }], next: null },
    })
    const { commands, plan } = planning(t)
    assert.match(
      (await plan('--host', host)).stdout,
      /^The project does not process persons .*: no persons are linked/m,
    )
    const { limits } = planOf(commands)
    assert.equal(limits.isPersonless, true)
  })

  it('an unknown personal key is refused, and a key for another project is noticed', async t => {
    const known = { '/array/phc_shop/config': {} }
    const refusing = await serveAnswers(t, { ...known, '/api/projects/': { status: 401, detail: 'Unknown key.' } })
    const stderr = refusalOf(await planning(t).plan('--host', refusing))
    assert.match(stderr, /rejected the key in PENNON_PERSONAL_KEY: Unknown key\..*Nothing was sent/)
    const empty = await serveAnswers(t, { ...known, '/api/projects/': { results: [], next: null } })
    assert.match((await planning(t).plan('--host', empty)).stdout, /has no access to a project with the key phc_shop/)
  })
})

function planning(t: TestContext, folder: string = tempDir(t)) {
  const commands = new ImportCommands(folder, {
    PENNON_PERSONAL_KEY: `phx_${'1'.repeat(30)}`,
    PENNON_PROJECT_KEY: 'phc_shop',
  })
  const raw = commands.file('raw.jsonl', record)
  return { commands, plan: (...options: string[]) => commands.plan([raw], ...options) }
}

/** A job whose target has answered only that it knows the public key; its `answers` may change. */
async function rehearsedWithoutKey(t: TestContext) {
  const answers: Record<string, object> = { '/array/phc_shop/config': {} }
  const folder = tempDir(t)
  const withoutKey = new ImportCommands(folder, { PENNON_PROJECT_KEY: 'phc_shop' })
  const raw = withoutKey.file('raw.jsonl', record)
  const { stdout: planned } = await withoutKey.plan([raw], '--host', await serveAnswers(t, answers))
  mustSucceed(await withoutKey.call('run'))
  return { answers, withoutKey, planned, commands: planning(t, folder).commands }
}

function planOf({ job }: ImportCommands): ImportPlan {
  return readPlan(new JobFolder(job))!
}
