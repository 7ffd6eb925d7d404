import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, it } from 'node:test'

/** Each folder may import itself and those before it. */
const layers = ['text', 'controls', 'fields', 'overlays', 'states', 'json', 'grid']
const root = import.meta.dirname
const files = globSync('**/*.{ts,tsx}', { cwd: root }).filter(file => !file.endsWith('.test.ts'))

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function findLayer(file: string): number {
  return layers.indexOf(file.split('/')[0]!)
}

describe('the components', () => {
  it('import only what is in their own layer or below', () => {
    assert.ok(files.length > 40)
    const wrong = files.flatMap(file => {
      const targets = [...read(file).matchAll(/from '(\.[^']+)'/g)].map(([, path]) => join(dirname(file), path!))
      return targets.filter(target => file.includes('/') && findLayer(target) > findLayer(file)).map(to => [file, to])
    })
    assert.deepEqual(wrong, [])
  })

  it('know no screen, no address of the server, and of its sources only the core', () => {
    const imports = /from '(?:#(?!core\/)|(?:\.\.\/)+(?:screens|api)\/)|['"`]\/(?:api|ui)\//
    assert.deepEqual(
      files.filter(file => imports.test(read(file))),
      [],
    )
  })

  it('never make HTML from text', () => {
    const sources = globSync('**/*.{ts,tsx}', { cwd: join(root, '..') })
    const makers = /dangerouslySetInnerHTML|\.(?:inner|outer)HTML\b|insertAdjacentHTML|document\.write/
    const found = sources.filter(file => makers.test(readFileSync(join(root, '..', file), 'utf8')))
    assert.deepEqual(found, [relative(join(root, '..'), import.meta.filename)])
  })
})
