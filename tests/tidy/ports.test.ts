import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { it } from 'node:test'

// Authors of adapters rely on the table of ports, so every port has to be in it.
it('every port is listed in the table of docs/ports', () => {
  const page = readFileSync('docs/ports/README.md', 'utf8')
  const ports = globSync('src/ports/**/*.ts').map(file => basename(file, '.ts'))
  assert.ok(ports.length > 0)
  assert.deepEqual(
    ports.filter(port => !page.includes(`\`${port}\``) && !page.includes(`${port}.ts`)),
    [],
  )
})
