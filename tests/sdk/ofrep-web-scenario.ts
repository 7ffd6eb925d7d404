// Does what a page does with OpenFeature's web SDK, with Node's own EventSource (`--experimental-eventsource`), which
// the test's process lacks. Arguments: base URL, project key, personal key. Prints what it saw as one JSON object.

import { OFREPWebProvider } from '@openfeature/ofrep-web-provider'
import { ClientProviderEvents, OpenFeature, type Provider } from '@openfeature/web-sdk'

const [baseUrl = '', projectKey = '', personalKey = ''] = process.argv.slice(2)
const seen: Record<string, unknown> = {}

const provider = new OFREPWebProvider({
  baseUrl,
  headers: [['Authorization', `Bearer ${projectKey}`]],
  cacheMode: 'disabled',
})
await OpenFeature.setContext({ targetingKey: 'page-user' })
await OpenFeature.setProviderAndWait(provider as Provider)
const client = OpenFeature.getClient()
seen.before = client.getBooleanValue('edited', false)

/** The names of changed flags, from each time that the provider took in something new. */
const changes: (readonly string[])[] = []
const waiting: (() => void)[] = []
client.addHandler(ClientProviderEvents.ConfigurationChanged, details => {
  changes.push(details?.flagsChanged ?? [])
  for (const wake of waiting.splice(0)) wake()
})
/** There is no polling: only the stream can say so. */
const changed = async (flagKey: string) => {
  while (!changes.some(keys => keys.includes(flagKey))) await new Promise<void>(resolve => waiting.push(resolve))
}

async function edit(active: boolean): Promise<void> {
  const response = await fetch(`${baseUrl}/api/projects/@current/feature_flags/edited/`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${personalKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ active }),
  })
  if (!response.ok) throw new Error(`the edit answered ${response.status} ${await response.text()}`)
}

await edit(false)
await changed('edited')
const { value, reason } = client.getBooleanDetails('edited', true)
seen.afterEdit = { value, reason }

await OpenFeature.setContext({ targetingKey: 'page-user', plan: 'pro' })
seen.afterContextChange = client.getBooleanValue('local-prop', false)
changes.length = 0
await edit(true)
await changed('edited')
seen.afterSecondEdit = client.getBooleanValue('edited', false)
seen.keepsContext = client.getBooleanValue('local-prop', false)
await OpenFeature.close()
console.log(JSON.stringify(seen))
