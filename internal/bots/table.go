package bots

// builtIn is the built-in table in the format of [Read], from the documentation of operators.
// For a crawler with several purposes, it lists the first one that the operator announced.
const builtIn = `
GPTBot                       openai       training ranges=https://openai.com/gptbot.json
OAI-SearchBot                openai       search   ranges=https://openai.com/searchbot.json
ChatGPT-User                 openai       user     ranges=https://openai.com/chatgpt-user.json
ChatGPT-Agent                openai       user     agents=chatgpt.com   # its user agent is a browser's

ClaudeBot                    anthropic    training ranges=https://claude.com/crawling/bots.json
Claude-SearchBot             anthropic    search   ranges=https://claude.com/crawling/bots.json
Claude-User                  anthropic    user     ranges=https://claude.com/crawling/bots.json
anthropic-ai                 anthropic    training # before ClaudeBot
Claude-Web                   anthropic    training # before ClaudeBot

Googlebot                    google       search   ranges=https://developers.google.com/static/crawling/ipranges/common-crawlers.json
Googlebot-Image              google       search   ranges=https://developers.google.com/static/crawling/ipranges/common-crawlers.json
Googlebot-Video              google       search   ranges=https://developers.google.com/static/crawling/ipranges/common-crawlers.json
Googlebot-News               google       search   robots-only
Storebot-Google              google       search   ranges=https://developers.google.com/static/crawling/ipranges/common-crawlers.json
Google-InspectionTool        google       search   ranges=https://developers.google.com/static/crawling/ipranges/common-crawlers.json
GoogleOther                  google       training ranges=https://developers.google.com/static/crawling/ipranges/common-crawlers.json # research
GoogleOther-Image            google       training ranges=https://developers.google.com/static/crawling/ipranges/common-crawlers.json
GoogleOther-Video            google       training ranges=https://developers.google.com/static/crawling/ipranges/common-crawlers.json
Google-CloudVertexBot        google       search   ranges=https://developers.google.com/static/crawling/ipranges/common-crawlers.json
Google-Extended              google       training robots-only # what Googlebot fetches, for Gemini
Google-Agent                 google       user     agents=agent.bot.goog ranges=https://developers.google.com/static/crawling/ipranges/user-triggered-agents.json
Google-NotebookLM            google       user     ranges=https://developers.google.com/static/crawling/ipranges/user-triggered-fetchers-google.json
Google-GeminiNotebook        google       user     ranges=https://developers.google.com/static/crawling/ipranges/user-triggered-fetchers-google.json
Google-Read-Aloud            google       user     people ranges=https://developers.google.com/static/crawling/ipranges/user-triggered-fetchers-google.json
FeedFetcher-Google           google       user     people ranges=https://developers.google.com/static/crawling/ipranges/user-triggered-fetchers-google.json

PerplexityBot                perplexity   search   ranges=https://www.perplexity.ai/perplexitybot.json
Perplexity-User              perplexity   user     ranges=https://www.perplexity.ai/perplexity-user.json

CCBot                        common-crawl training ranges=https://index.commoncrawl.org/ccbot.json

cohere-ai                    cohere       user
cohere-training-data-crawler cohere       training

meta-externalagent           meta         training
meta-webindexer              meta         search
meta-externalfetcher         meta         user
facebookexternalhit          meta         user     people # previews of links
facebookcatalog              meta         user     people
FacebookBot                  meta         training

Amazonbot                    amazon       training ranges=https://developer.amazon.com/amazonbot/ip-addresses/
Amzn-SearchBot               amazon       search   ranges=https://developer.amazon.com/amazonbot/searchbot-ip-addresses/
Amzn-User                    amazon       user     ranges=https://developer.amazon.com/amazonbot/live-ip-addresses/

YouBot                       you          search

Bytespider                   bytedance    training
TikTokSpider                 bytedance    search

Applebot                     apple        search   ranges=https://search.developer.apple.com/applebot.json
Applebot-Extended            apple        training robots-only # what Applebot fetches

bingbot                      microsoft    search   ranges=https://www.bing.com/toolbox/bingbot.json
BingPreview                  microsoft    user     people

DuckDuckBot                  duckduckgo   search   ranges=https://duckduckgo.com/duckduckbot.json
DuckDuckBot-Https            duckduckgo   search   ranges=https://duckduckgo.com/duckduckbot.json
DuckAssistBot                duckduckgo   user     ranges=https://duckduckgo.com/duckassistbot.json

MistralAI-User               mistral      user     ranges=https://mistral.ai/mistralai-user-ips.json
MistralAI-Index              mistral      search   ranges=https://mistral.ai/mistralai-index-ips.json
MistralAI-Training           mistral      training
AI2Bot                       ai2          training
Ai2Bot-Dolma                 ai2          training
Diffbot                      diffbot      training
Timpibot                     timpi        training
PanguBot                     huawei       training
PetalBot                     huawei       search
omgili                       webz         training
omgilibot                    webz         training
Webzio-Extended              webz         training robots-only # what its other crawlers fetch
ImagesiftBot                 the-hive     training
YandexBot                    yandex       search
YandexAdditional             yandex       search   robots-only # answers of its assistant
Baiduspider                  baidu        search
Baiduspider-render           baidu        search
`
