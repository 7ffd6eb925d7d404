// Sends large batches over many connections until it is killed. It is a separate process, so that it does not use the
// front's event loop. Prints the number of answers by status.

import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const [url = '', key = '', senderCount = '', mebibytes = ''] = process.argv.slice(2)
const event = JSON.stringify({ event: 'flood', distinct_id: 'flood', properties: { text: 'x'.repeat(2_000) } })
const eventCount = Math.floor((Number(mebibytes) * 1024 * 1024 - 100) / (event.length + 1))
const body = Buffer.from(`{"api_key":"${key}","batch":[${Array.from({ length: eventCount }, () => event).join(',')}]}`)
const answers: Record<string, number> = {}

function send(): Promise<string> {
  return new Promise(resolve => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const sent = request(`${url}/batch/`, { method: 'POST', headers }, answer => {
      answer.resume().on('close', () => resolve(String(answer.statusCode)))
    })
    sent.on('error', (cause: NodeJS.ErrnoException) => resolve(cause.code ?? 'error'))
    sent.end(body)
  })
}

for (let sender = 0; sender < Number(senderCount); sender++) {
  void (async () => {
    for (;;) {
      const answer = await send()
      answers[answer] = (answers[answer] ?? 0) + 1
      await sleep(20)
    }
  })()
}
setInterval(() => console.log(JSON.stringify(answers)), 1_000)
