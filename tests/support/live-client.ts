// A client of the live view that reads its messages as they arrive.

import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import { eventually } from './eventually.ts'

// biome-ignore lint/suspicious/noExplicitAny: messages have many shapes
export type LiveMessage = { id: string | null; kind: string; data: any; atMs: number }

export interface LiveClient {
  readonly response: IncomingMessage
  readonly messages: readonly LiveMessage[]
  of(kind: string): LiveMessage[]
  isClosed(): boolean
  leave(): void
}

/** Resolves when the server has answered; after a 200, when it has sent `ready`. */
export async function watchLive(url: string, path: string, key: string): Promise<LiveClient> {
  const messages: LiveMessage[] = []
  let isClosed = false
  let rest = ''
  const request: ClientRequest = get(url + path, { headers: { authorization: `Bearer ${key}` }, agent: false })
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', reject)
  })
  request.on('error', () => undefined) // a cut connection shows by its close event
  response.on('error', () => undefined)
  response.once('close', () => {
    isClosed = true
  })
  response.setEncoding('utf8')
  response.on('data', chunk => {
    const texts = (rest + chunk).split('\n\n')
    rest = texts.pop()!
    for (const text of texts) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1] ?? null
      const kind = field('event')
      if (kind !== null) messages.push({ id: field('id'), kind, data: JSON.parse(field('data')!), atMs: Date.now() })
    }
  })
  if (response.statusCode === 200) await eventually(() => messages.length > 0 || isClosed, { what: 'ready' })
  return {
    response,
    messages,
    of: kind => messages.filter(message => message.kind === kind),
    isClosed: () => isClosed,
    leave: () => request.destroy(),
  }
}
