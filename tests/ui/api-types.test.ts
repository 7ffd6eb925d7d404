// The screens call the private API with types printed from its OpenAPI document, so a changed answer is a type error in the
// screen that shows it. `npm run ui:types` prints them again.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { startFront } from '../support/front.ts'
import { type OpenApiDocument, printApiTypes } from './support/print-api-types.ts'

const path = join(import.meta.dirname, '../../web/src/api/schema.ts')

it('the screens call the private API with the types of its present OpenAPI document', async t => {
  const front = await startFront()
  t.after(() => front.close())
  const document = (await (await fetch(`${front.url}/api/schema/`)).json()) as OpenApiDocument
  const biome = join(import.meta.dirname, '../../node_modules/.bin/biome')
  const printed = execFileSync(biome, ['format', '--stdin-file-path', path], {
    input: printApiTypes(document),
    encoding: 'utf8',
  })
  if (process.env.PRINT_API_TYPES === '1') writeFileSync(path, printed)
  assert.equal(printed, readFileSync(path, 'utf8'), 'run `npm run ui:types`')
})
