"""Word lists of the anchor documents (anchor_documents.py). In: nothing. Out: lists of Chinese and English phrases by domain, nouns that are counted, verbs.

Must hold: nothing here comes from the golden set; the lists of decoys are split into halves, so that held-out documents show decoys that no training saw.
"""

TITLES = {
    "lease": (["租赁物", "租金与押金", "维修责任", "转租限制", "交付与返还", "水电费用", "续租", "违约金", "优先购买权", "装修约定"],
              ["Premises", "Rent and Deposit", "Repairs", "Subletting", "Handover", "Utilities", "Renewal", "Late Charges", "Insurance of the Building", "Fixtures"]),
    "statute": (["总则", "登记机关", "行政许可", "监督检查", "法律责任", "复议与诉讼", "附则", "信息公开", "保障措施", "听证程序"],
                ["General Provisions", "Registration Authority", "Licences", "Supervision", "Penalties", "Review", "Final Provisions", "Disclosure", "Safeguards", "Hearings"]),
    "medical": (["受试者入选标准", "给药方案", "不良事件报告", "知情同意", "随机与盲法", "样本量估算", "数据管理", "伦理审查", "疗效评价", "访视安排"],
                ["Eligibility", "Dosing Regimen", "Adverse Events", "Informed Consent", "Randomisation", "Sample Size", "Data Management", "Ethics Review", "Endpoints", "Study Visits"]),
    "standard": (["术语和定义", "试验方法", "检验规则", "标志与包装", "尺寸公差", "材料要求", "环境适应性", "抽样方案", "判定原则", "贮存期限"],
                 ["Terms and Definitions", "Test Methods", "Inspection Rules", "Marking and Packaging", "Tolerances", "Materials", "Environmental Conditions", "Sampling", "Acceptance", "Storage Life"]),
    "tender": (["投标人须知", "投标保证金", "评标办法", "技术规格", "商务条款", "开标程序", "履约担保", "澄清与答疑", "废标情形", "中标通知"],
               ["Instructions to Bidders", "Bid Security", "Evaluation", "Technical Specification", "Commercial Terms", "Bid Opening", "Performance Bond", "Clarifications", "Rejection", "Award"]),
    "manual": (["安全须知", "开箱检查", "安装步骤", "日常保养", "故障排除", "备件清单", "接线说明", "软件升级", "清洁方法", "报废处理"],
               ["Safety", "Unpacking", "Installation", "Maintenance", "Troubleshooting", "Spare Parts", "Wiring", "Software Update", "Cleaning", "Disposal"]),
}

# {} is a mention without a cue.
ZH_MENTIONS = ["{}另有规定的，从其规定。", "{}要求在三十日内答复。", "除{}列明的情形外，费用由申请人承担。", "{}与{}的表述并不一致。", "双方对{}的理解存在分歧。", "上述期限适用{}。",
    "违反{}的，责令限期改正。", "本处所称期限即{}所称期限。", "{}不再适用。", "如{}未作约定，由双方协商。", "检验员应核对{}和{}。", "{}自发布之日起施行。", "{}、{}由监理人解释。",
    "对{}提出修改建议的，应当书面说明。", "凡{}没有列入的项目，一律不予计价。", "{}中的温度以摄氏度为单位。", "患者满足{}即可入组。", "{}规定的剂量不得超过每日20毫克。"]
EN_MENTIONS = ["{} applies only to the first delivery.", "Nothing in {} limits this right.", "The sponsor amended {} last year.", "Both {} and {} use the same term.", "{} prevails over the drawings.",
    "The bidder shall complete {} before signature.", "A patient who meets {} may enrol.", "{} is not to be read alone.", "The values of {} are given in millimetres.", "In {} the word means a business day.",
    "The tenant relies on {}, the landlord on {}.", "{} sets the limit at 20 mg a day.", "We read {} differently.", "{} lists the spare parts.", "The inspector checks {} twice a year.", "{} shows the wiring."]
ZH_CUED = ["报告的内容{}办理。", "剂量调整{}执行。", "投标人{}提交样品。", "押金的退还{}处理。", "申请人可以{}请求复核。", "（{}）", "操作步骤{}。", "判定结果{}给出。", "监测频率{}确定；", "该费用{}计算，"]
EN_CUED = ["The dose is reduced {}.", "The deposit is returned {}.", "For details {}.", "Samples are taken {} and stored cold.", "({})", "The bid is rejected {}.", "Spare parts are ordered {}.", "{}, the lease ends early.", "Results are reported {}; others are not."]
ZH_FILLER = ["出租人应当在交付前完成清洁。", "试验温度为23.5摄氏度，湿度不超过百分之六十。", "受试者每周随访一次，连续四周。", "设备重量约为12.8千克，额定电压220伏。", "评标委员会由五人以上单数组成。",
    "登记事项发生变更的，应当及时办理变更登记。", "安装前应切断电源，并等待五分钟。", "承租人不得擅自改变房屋结构。", "样品应在开箱后24小时内检验。", "保证金为人民币3.5万元，以转账方式缴纳。", "血压高于140/90毫米汞柱的，应当暂停给药。",
    "本机适用于海拔2000米以下地区。", "监管部门可以进入现场检查。", "开标时间为2024年6月18日上午9时30分。", "滤网每三个月更换一次。"]
EN_FILLER = ["The landlord cleans the rooms before the handover.", "Tests run at 23.5 degrees and 60 per cent humidity.", "Visits take place every week for four weeks.", "The unit weighs 12.8 kg and needs 220 V.",
    "The panel has at least five members.", "Changes are registered without delay.", "Switch off the mains and wait five minutes.", "The tenant must not alter the structure.", "The bond is USD 3,500.00, paid by transfer.",
    "Treatment stops above 140/90 mmHg.", "Do not use above 2,000 metres.", "Bids open on 18 June 2024 at 9:30.", "Replace the filter every three months.", "The authority may inspect the site.", "Keep away from children."]

# Whole sentences that hold no anchor though they look like it; the grammar alone refuses them.
ZH_NEGATIVES = ["第一次检查安排在2023年4月2日，第二次顺延。", "第三方机构出具报告，第一名获得合同。", "请在第12页签字，第5行填写日期。", "固件版本V3.2.1于第三季度发布。", "附件若干，另行装订；附件一份随函寄出。",
    "随信附件3份、附件两张。", "图4-1为接线图，步骤2见下页。", "服务器地址为10.2.3.4，电话021-5555 0137。", "单价为4.2万元，税率6%。", "第一条件是取得批准，第二节点在九月。", "第三编辑部负责校对，第一章程草案作废。",
    "甲方代表3人到场，仪表2台已检定，评分表4作废。", "第二款式的外壳停产。", "第n条、第×章为占位符。", "第三项任务由乙方承担，第二款车型不变。", "4.2条没有编号前缀。", "一、总体要求。（一）基本原则。",
    "见5.3所述位置。", "后台显示第一条消息已撤回，第二条生产线停产检修。", "客服收到的第三条留言未回复，第四条记录缺失。", "系统弹出第2条建议，第三条新闻已删除。", "上午第一节课讲安全，第二节车厢停用，第三节电池漏液。", "前款所称期限不含节假日。",
    "他的意见是再看第二版。", "地址：中山路3号4栋第5层。", "体温37.2度，第7天复查。"]
EN_NEGATIVES = ["This section was redrafted; the article in the journal is older.", "We schedule 3 visits a month and exhibit 5 samples.", "Part No. 77-2 replaces Part No. 76.", "Firmware 4.2.1 runs at 10.3.2.1.",
    "Figure 3-1 and Step 4 are on page 12.", "The table below and the annex at the back are blank.", "Section [●] and Annex [ ] stay open.", "The price is $4.20, or 3.5 per cent more.", "Sit at table 4 by the door.", "A cross section is shown.",
    "In chapter three the author objects.", "Order the 5th section of the fence.", "4.2 Scope of work", "(a) first item; (b) second item", "Phone +44 20 5550 0142, room 3.4.", "The 2nd part arrives on 3 May 2024.", "the exhibit 7 miles away", "Section 5th is a typo.",
    "The subsection, the clause and the schedule have no number."]

# Decoys that the closed lists of the definition do not hold: counted things, verbs, words at a line's end before an outline number.
ZH_COUNTED = ["围巾", "裤子", "裙子", "毛巾", "街上", "马路", "大河", "小溪", "绳子", "项链", "皮带", "领带", "床单", "毯子", "狗", "蛇", "鲤鱼", "鲨鱼", "渔船", "快艇", "香烟", "肥皂", "黄瓜", "丝瓜", "弹幕", "私信", "推文", "语音",
    "热搜", "帖文", "短裤", "牛仔裤", "手链", "胶带", "光缆", "电缆", "麻绳", "小巷", "胡同", "支流", "裂缝", "伤疤", "皱纹", "尾巴", "长裙", "被单", "链子", "鞋带", "腰带", "丝巾", "小狗", "鳄鱼", "金鱼", "小船", "帆船", "地铁线", "山路", "小路",
    "河流", "溪流", "毛毯", "铁链", "红绳", "彩带", "面包虫", "毛毛虫", "泥鳅", "草鱼", "石板路", "索道", "滑道", "泳道", "沟渠", "彩信", "弹窗", "朋友圈", "视频号动态", "猎犬", "警犬", "腊肠", "培根肉", "火腿", "烟"]
ZH_LESSONS = ["体育课", "数学课", "语文课", "晚自习", "甘蔗", "竹子", "干电池", "莲藕", "英语课", "音乐课", "火车", "木桩", "化学课", "美术课", "铁轨", "水管", "钢管", "绿皮车"]
ZH_SEEN = ["他买了", "小王钓到", "我们走过", "她穿着", "群里发的", "屏幕上的", "柜子里的", "请把", "剪断了", "沿着", "刚看到", "他转发了", "晾着的", "救起", "路过", "翻到", "孩子数到", "桌上的", "店里的", "今天的", "挖开", "他游过"]
ZH_SEEN_LESSON = ["上午的", "今天的", "周三的", "孩子们上", "老师讲完", "砍下", "换掉", "缺席", "下午的", "明天的", "锯断", "修好"]
EN_VERB_OBJECTS = ["meetings", "visits", "inspections", "interviews", "calls", "samples", "paintings", "motions", "bills", "photos", "sessions", "workshops", "rehearsals", "sculptures", "trials", "tests", "reviews", "deliveries", "provinces",
    "districts", "islands", "villages", "artworks", "garments", "objects", "briefings", "shifts", "flights", "appointments", "lessons", "drills", "audits", "classes", "matches", "parades", "fields", "plots", "buildings"]
EN_VERB_TAILS = ["a week", "per month", "for the team", "with the client", "next week", "in the hall", "before noon", "at once", "on Monday", "each year", "every quarter", "to begin with", "by Friday", "in March"]
EN_I_VERBS = ["read", "wrote", "played", "liked", "mentioned", "found", "cited", "enjoyed", "sent", "quoted", "had", "saw", "lost", "kept", "drafted", "translated", "remember", "know", "prefer", "discussed", "needed", "took", "gave", "bought"]
EN_I_TRUE = ["defines the terms", "is repealed", "applies", "sets out the fees", "of the Treaty", "shall prevail", "contains the rules", "deals with scope", "was amended", "lists the parties", "has three articles", "and nothing else", "remains in force", "shall apply", "may be amended", "must be read first", "provides for notice", "requires consent",
    "governs the sale", "states the price", "is void", "are void", "or any other", "in its entirety", "as amended", "to the Agreement", "for the purposes", "only", "below", "above", "hereof", "names the agent", "says so", "does not apply", "can be waived", "will end"]
OUTLINE_ZH = ["基本情况", "总体要求", "适用范围", "工作目标", "组织机构", "经费预算", "实施步骤", "联系方式", "项目背景", "主要内容", "人员名单", "时间安排", "验收要求", "编制依据", "设备清单", "风险提示"]
OUTLINE_EN = ["Scope", "Payment", "Delivery", "Definitions", "Term", "Notices", "Warranty", "Fees", "Parties", "Governing law", "Liability", "Insurance", "Purpose", "Background", "Audit", "Support"]


def half(words, held_out):
    """The half of a list that training sees, or the other one."""
    return words[1::2] if held_out else words[0::2]
