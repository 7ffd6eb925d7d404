import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { it } from 'node:test'

// A function is named by a verb and its object. One noun, preposition or participle says nothing where it is called.

const declarations =
  /\bfunction\*? (\w+)\s*[<(]|\b(?:const|let) (\w+)(?:: [^=\n]+)? = (?:async )?(?:function\b|\w+ =>|(?:<[^=]*>)?\([^()\n]*\)(?:: [^=\n]+)? =>)/g
/** A class and the name that its constructor sets. */
const errorNames = /^(?:export )?class (\w+) extends \w*Error\b(?:(?!^\}).)*?this\.name = '(\w+)'/gms
/** Ends in -ed or -ly, and is a verb. */
const verbs = new Set(['embed', 'feed', 'need', 'seed', 'shed', 'apply', 'reply', 'supply'])

const nouns = `
  all any both bytes columns days element exports fullness heads how item items level member members most least name
  names number numbers object objects others page pages part parts people piece property row rows side text texts thing
  things time two value values versions words zeros at from in of off on then where whole within without unless yes no
  never none nothing nowhere only once again after before earlier later earliest full bad good bare begun chosen drawn
  found given gone kept known made said seen shown taken told unfit unread written differing missing everyone`
const generic = new Set(nouns.trim().split(/\s+/))

function isRefused(name: string): boolean {
  if (!/^[a-z]+\d*$/.test(name) || verbs.has(name)) return false
  return generic.has(name) || /(?:ed|ly)\d*$/.test(name)
}

it('no function name consists of only one noun, preposition or participle', () => {
  const refused: string[] = []
  for (const file of globSync('src/**/*.ts', { exclude: ['**/*.test.ts'] })) {
    const source = readFileSync(file, 'utf8')
    for (const [, named, assigned] of source.matchAll(declarations)) {
      const name = named ?? assigned!
      if (isRefused(name)) refused.push(`${file}: ${name}`)
    }
  }
  assert.deepEqual(refused, [], 'name the function by a verb and its object, such as parseField or isWithinRange')
})

it('the name of an error is the name of its class', () => {
  const others: string[] = []
  for (const file of globSync('src/**/*.ts')) {
    for (const [, className, name] of readFileSync(file, 'utf8').matchAll(errorNames)) {
      if (name !== className) others.push(`${file}: ${className} has the name ${name}`)
    }
  }
  assert.deepEqual(others, [])
})

it('a log stream is called a stream, and a kind of event is called a lane', () => {
  const phrases = /\b(?:log lanes?|lanes? of the log|log's lanes?)\b|pennon_log_\w+\{lane=/i
  const paths = ['src/**/*.ts', 'tests/**/*.ts', 'docs/operating/*.md', 'docs/ports/*.md', 'docs/grafana/*']
  const files = globSync(paths, { exclude: ['tests/tidy/**'] })
  assert.deepEqual(
    files.filter(file => phrases.test(readFileSync(file, 'utf8'))),
    [],
  )
  const metrics = readFileSync('src/telemetry/metrics.ts', 'utf8')
  const ofLog = [...metrics.matchAll(/gauge\(\s*'(pennon_log_\w+)',[^)]*\)/g)]
  assert.ok(ofLog.length >= 3, 'metrics of the log are found')
  for (const [text, name] of ofLog) assert.ok(!text.includes("'lane'"), `the label of ${name} is stream`)
})
