// The OpenAPI document as other tools read it: a linter finds nothing unexplained, and a generated, type-checked client
// works against a running instance.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type RunningFront, startFront } from '../support/front.ts'
import { npmFolderWith } from '../support/npm-environment.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'

const run = promisify(execFile)
let front: RunningFront
let folder: string

before(async () => {
  front = await startFront()
  folder = mkdtempSync(join(tmpdir(), 'pennon-openapi-'))
  const document = await (await fetch(`${front.url}/openapi.json`)).text()
  writeFileSync(join(folder, 'openapi.json'), document)
})
after(async () => {
  await front?.close()
  rmSync(folder, { recursive: true, force: true })
})

describe('the OpenAPI document', () => {
  it('passes a linter, except for documented rules', async () => {
    const redocly = npmFolderWith('@redocly/cli@2.77.0')
    // docs/decisions/0036-what-the-openapi-document-leaves-open.md says why each of these is off.
    const rules = { 'no-path-trailing-slash': 'off', 'info-license': 'off' }
    // JSON is YAML; the linter takes no other name.
    writeFileSync(join(folder, 'redocly.yaml'), JSON.stringify({ extends: ['recommended'], rules }))
    const args = ['lint', 'openapi.json', '--config', 'redocly.yaml', '--format', 'json', '--max-problems', '50']
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
    const linter = join(redocly, 'node_modules', '.bin', 'redocly')
    const { stdout } = await run(linter, args, { cwd: folder, env }).catch((error: { stdout: string }) => error)
    const { problems } = JSON.parse(stdout.slice(stdout.indexOf('{')))
    assert.deepEqual(
      problems.map(({ ruleId, message, location }: never) => [ruleId, message, location]),
      [],
    )
  })

  it('generates a typed client that evaluates, captures and manages flags', async () => {
    const tools = npmFolderWith('openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', 'typescript@5.9.3')
    const generator = join(tools, 'node_modules', '.bin', 'openapi-typescript')
    await run(generator, ['openapi.json', '-o', 'schema.d.ts'], { cwd: folder })
    symlinkSync(join(tools, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
    writeFileSync(join(folder, 'client.ts'), client)
    writeFileSync(join(folder, 'mistakes.ts'), mistakes)
    const strict = { strict: true, noEmit: true, module: 'nodenext', target: 'esnext', skipLibCheck: false, types: [] }
    const compilerOptions = { ...strict, lib: ['esnext', 'dom'] }
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['client.ts', 'mistakes.ts'] }),
    )
    const compiler = resolve('node_modules', '.bin', 'tsc')
    const { stdout } = await run(compiler, ['-p', folder]).catch((error: { stdout: string }) => error)
    assert.equal(stdout, '')
    const ran = await run(process.execPath, ['--disable-warning=ExperimentalWarning', 'client.ts'], {
      cwd: folder,
      env: {
        ...process.env,
        NODE_TEST_CONTEXT: undefined,
        PENNON: front.url,
        KEY: testPersonalKey,
        TOKEN: testProjectKey,
      },
    })
    assert.deepEqual(JSON.parse(ran.stdout), {
      created: ['typed', 50, 'contains'],
      listed: 1,
      refused: [400, 'invalid_input', 'filters.groups.0.rollout_percentage'],
      evaluated: 'boolean',
      captured: 200,
      cohort: 'OR',
    })
  })
})

/** What a user would write; every field of it is typed. */
const client = `
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.d.ts'

declare const process: { env: Record<string, string> }
const { PENNON, KEY, TOKEN } = process.env
const api = createClient<paths>({ baseUrl: PENNON, headers: { authorization: 'Bearer ' + KEY } })
const path = { project_id: '@current' }
const filter: components['schemas']['PropertyFilter'] = {
  key: 'email', type: 'person', operator: 'icontains', value: '@example.com',
}
const filters: components['schemas']['FlagFilters'] = { groups: [{ properties: [filter], rollout_percentage: 50 }] }
const created = await api.POST('/api/projects/{project_id}/feature_flags/', {
  params: { path }, body: { key: 'typed', name: 'Typed', filters },
})
if (created.data === undefined) throw new Error(JSON.stringify(created.error))
const [set] = created.data.filters.groups ?? []
const list = await api.GET('/api/projects/{project_id}/feature_flags/', { params: { path, query: { search: 'typ' } } })
const refused = await api.PATCH('/api/projects/{project_id}/feature_flags/{flag_id}/', {
  params: { path: { ...path, flag_id: 'typed' } }, body: { filters: { groups: [{ rollout_percentage: 101 }] } },
})
const cohort = await api.POST('/api/projects/{project_id}/cohorts/', {
  params: { path },
  body: { name: 'Staff', filters: { properties: { type: 'OR', values: [filter as { key: string, type: 'person' }] } } },
})
const evaluated = await api.POST('/flags', {
  params: { query: { v: 2 } }, body: { token: TOKEN, distinct_id: 'ada', person_properties: { email: 'ada@example.com' } },
})
const captured = await api.POST('/batch', {
  body: { api_key: TOKEN, batch: [{ event: 'paid', distinct_id: 'ada', properties: { price: 1 } }] },
})
const { detail: _detail, ...error } = refused.error!
console.log(JSON.stringify({
  created: [created.data.key, set?.rollout_percentage, (set?.properties?.[0]?.operator ?? '').replace('i', '')],
  listed: list.data?.count,
  refused: [refused.response.status, error.code, error.attr],
  evaluated: typeof evaluated.data?.flags?.typed?.enabled,
  captured: captured.response.status,
  cohort: cohort.data?.filters.properties?.type,
}))
`

/** What the types have to refuse: a line without an error is one. */
const mistakes = `
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.d.ts'

const api = createClient<paths>({ baseUrl: '' })
const params = { path: { project_id: '1' } }
// @ts-expect-error the key is missing
await api.POST('/api/projects/{project_id}/feature_flags/', { params, body: { name: 'x' } })
// @ts-expect-error there is no such operator
const filter: components['schemas']['PropertyFilter'] = { key: 'email', type: 'person', operator: 'rhymes', value: 1 }
// @ts-expect-error a rollout is a number
const filters: components['schemas']['FlagFilters'] = { groups: [{ rollout_percentage: 'half' }] }
// @ts-expect-error there is no such path
await api.GET('/api/projects/{project_id}/flags/', { params })
// @ts-expect-error nobody is asked about
await api.POST('/flags', { body: { token: 'phc_x' } })
`
