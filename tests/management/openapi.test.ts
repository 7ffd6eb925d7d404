import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isKnownScope } from '#core/scopes.ts'
import { toDocumentedPath } from '#http/management/kit/openapi.ts'
import { type Route, sendJson } from '#http/shared/route.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { startClosableManagement } from '../support/management-api.ts'
import { startedForTests } from '../support/started-for-tests.ts'

interface Json {
  readonly [key: string]: Json
}

const decide: Route = {
  method: 'POST',
  path: '/decide',
  access: 'project_key',
  group: 'flags',
  bodyLimitBytes: 1_000,
  handler: (_request, reply) => sendJson(reply, 200, '{}'),
}

describe('the OpenAPI document', () => {
  const api = startedForTests(() => startClosableManagement({ otherRoutes: [decide] }))

  it('is served without a key at /api/schema/ and at /openapi.json', async () => {
    const { status, body } = await api.call('GET', '/api/schema/', { key: null })
    assert.deepEqual([status, body.openapi, body.info.version], [200, '3.1.0', '1.2.3'])
    assert.deepEqual((await api.call('GET', '/openapi.json', { key: null })).body, body)
  })

  it('is compressed for clients that accept it', async () => {
    const ask = async (encoding: string) => {
      const response = await fetch(`${api.url}/api/schema/`, { headers: { 'accept-encoding': encoding } })
      const { headers } = response
      return { body: await response.text(), packing: headers.get('content-encoding'), vary: headers.get('vary') }
    }
    const plain = await ask('identity')
    assert.deepEqual([plain.packing, plain.vary], [null, 'Accept-Encoding'])
    assert.deepEqual(await ask('gzip, br'), { ...plain, packing: 'br' })
    for (const encoding of ['gzip', 'gzip, br;q=0'])
      assert.deepEqual(await ask(encoding), { ...plain, packing: 'gzip' })
  })

  it('describes creations with 201, accepted requests with 202, and deletions with 204', async () => {
    const { routes } = api
    const others = routes.filter(({ operation }) => operation.success.status !== 200)
    // The same routes are also beneath `environments` and `organizations/…/projects`.
    const shown = others
      .filter(({ path }) => !/^\/api\/(environments|organizations)\b/.test(path))
      .map(({ method, path, operation }) => `${method} ${path} ${operation.success.status}`)
    const ofProject = [
      ...['cohorts', 'early_access_feature', 'experiments', 'feature_flags', 'import_jobs', 'surveys'].map(
        name => `POST ${name} 201`,
      ),
      ...['POST experiments/:experimentId/duplicate 201', 'POST persons/bulk_delete 202', 'DELETE persons/:uuid 202'],
      ...['POST persons/:uuid/split 201', 'POST person_rebuilds 202'],
      ...['POST import_jobs/:jobId/publish 202', 'POST import_jobs/:jobId/discard 202'],
      ...['DELETE cohorts/:cohortId 204', 'DELETE early_access_feature/:featureId 204', 'DELETE surveys/:surveyId 204'],
      ...['DELETE experiments/:experimentId 204', 'DELETE feature_flags/:flagId 204'],
      'DELETE groups_types/:groupTypeIndex 204',
    ].map(line => line.replace(' ', ' /api/projects/:projectId/'))
    const ofInstance = [
      ...['POST /api/projects 201', 'DELETE /api/projects/:projectId 204', 'POST /api/personal_api_keys 201'],
      ...['DELETE /api/personal_api_keys/:keyId 204', 'DELETE /api/personal_api_keys/@current 204'],
      ...['DELETE /api/session 204', 'POST /api/invitations 201', 'POST /api/users/:userId/reset_link 201'],
      'DELETE /api/invitations/:invitationId 204',
      ...[
        '/:userId',
        '/:userId/sessions',
        '/:userId/sessions/:sessionId',
        '/@me/sessions',
        '/@me/sessions/:sessionId',
      ].map(path => `DELETE /api/users${path} 204`),
    ]
    assert.deepEqual(shown.toSorted(), [...ofProject, ...ofInstance].toSorted())
    const aliases = others.filter(({ path }) => path.startsWith('/api/environments'))
    assert.equal(aliases.length, ofProject.length + 2)
  })

  it('describes every route with its scope, body and answer', async () => {
    const document = await api.get('/api/schema/')
    for (const route of api.routes) {
      const operation = document.paths[toDocumentedPath(route.path)]?.[route.method.toLowerCase()]
      assert.ok(operation, `${route.method} ${route.path}`)
      assert.equal(operation['x-scope'], route.scope)
      for (const scope of route.scope.split(' ')) assert.ok(scope === 'any' || isKnownScope(scope), scope)
      assert.equal(operation.requestBody !== undefined, route.operation.body !== null)
      assert.ok(operation.responses[route.operation.success.status])
    }
    for (const { name, description } of document.tags) assert.notEqual(description, name, 'the tag has a description')
    assert.ok(document.paths['/decide'].post)
    const count = Object.values<object>(document.paths).flatMap(Object.keys).length
    assert.equal(count, api.routes.length + 1)
  })

  it('lists the values that a response can have, which are fewer than those accepted in a body', async () => {
    const document = await api.get('/api/schema/')
    const { Cohort, EarlyAccessFeature, Project, Quotas, Survey } = document.components.schemas
    for (const name of ['name', 'description']) assert.deepEqual(Cohort.properties[name], { type: 'string' })
    for (const id of [EarlyAccessFeature.properties.id, Survey.properties.id, Project.properties.uuid])
      assert.deepEqual(id, { type: 'string', format: 'uuid' })
    const { drop_events_older_than_seconds: limit, cookieless_server_hash_mode: mode } = Project.properties
    for (const { anyOf } of [limit, Quotas.properties.events, Survey.properties.linked_flag_id])
      assert.deepEqual(fieldOf(anyOf, 'type'), ['integer', 'null'])
    assert.deepEqual(fieldOf(mode.anyOf, 'const'), [0, 1, 2])
    for (const setting of ['person_processing_opt_out', 'feature_flag_called_dedup', 'group_types_frozen'])
      assert.ok(Project.properties[setting].description, setting)
  })

  it('is structurally valid', async () => {
    const document = await api.get('/api/schema/')
    const ids = new Set<string>()
    for (const [path, item] of Object.entries<Json>(document.paths)) {
      assert.match(path, /^\/[^:?]*$/)
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(match => match[1])
      for (const [method, operation] of Object.entries<Json>(item)) {
        const where = `${method} ${path}`
        assert.match(method, /^(get|post|put|patch|delete|head|options)$/)
        const id = String(operation.operationId)
        assert.ok(!ids.has(id), `${id} stands twice`)
        ids.add(id)
        const parameters = operation.parameters as unknown as {
          name: string
          in: string
          required: boolean
          schema: Json
        }[]
        assert.deepEqual(
          fieldsOf(
            parameters.filter(parameter => parameter.in === 'path'),
            'name',
            'required',
          ),
          inPath.map(name => [name, true]),
          where,
        )
        for (const { in: place, schema } of parameters) {
          assert.ok(place === 'path' || place === 'query')
          checkSchema(schema, document, where)
        }
        assert.ok(Object.keys(operation.responses!).length > 0, where)
        for (const [status, response] of Object.entries<Json>(operation.responses!)) {
          assert.match(status, /^[2-5]\d\d$/)
          assert.equal(typeof response.description, 'string')
          const schema = response.content?.['application/json']?.schema
          if (schema !== undefined) checkSchema(schema, document, where)
        }
        if (operation.requestBody !== undefined) {
          checkSchema(operation.requestBody.content!['application/json']!.schema!, document, where)
        }
      }
    }
  })

  it('contains no key and no secret', async () => {
    const { text } = await api.call('GET', '/api/schema/')
    assert.ok(!text.includes('phc_first') && !text.includes('phx_all'))
  })
})

const types = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']

/** The part of JSON Schema 2020-12 that we use. */
function checkSchema(schema: Json, document: Json, where: string): void {
  assert.equal(typeof schema, 'object', where)
  if (typeof schema.$ref === 'string') {
    const target = (schema.$ref as string)
      .slice(2)
      .split('/')
      .reduce((node, key) => node[key]!, document)
    assert.ok(target, `${where}: ${schema.$ref as string}`)
    return
  }
  for (const type of [schema.type ?? []].flat() as unknown as string[])
    assert.ok(types.includes(type), `${where}: ${type}`)
  const properties = schema.properties ?? {}
  for (const name of (schema.required ?? []) as unknown as string[])
    assert.ok(Object.hasOwn(properties, name), `${where}: ${name}`)
  for (const property of Object.values(properties)) checkSchema(property, document, where)
  for (const member of (schema.anyOf ?? []) as unknown as Json[]) checkSchema(member, document, where)
  if (schema.items !== undefined) checkSchema(schema.items, document, where)
}
