import { EmptyState } from '../../components/states/states.tsx'
import { Page } from '../../shell/page.tsx'

export function NoProject() {
  return (
    <Page title="Home">
      <EmptyState title="No project">
        Every project of this instance was deleted. Make one with <code>POST /api/projects/</code>.
      </EmptyState>
    </Page>
  )
}
