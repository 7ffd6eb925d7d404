import './looks/tokens.css'
import './looks/base.css'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queries } from './api/queries.ts'
import { recoverFromOutages } from './api/recover.ts'
import { Foundations } from './components/foundations.tsx'
import { applyPreferences } from './looks/theme.ts'
import { router } from './router.tsx'

applyPreferences()
recoverFromOutages(() => {
  queries.invalidateQueries()
  router.invalidate()
})

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Foundations>
        <RouterProvider router={router} />
      </Foundations>
    </QueryClientProvider>
  </StrictMode>,
)
